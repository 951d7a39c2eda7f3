"""The page of the assistant, and its service below the address `…/assistant`."""

from django.urls import path

from demo_project.assistant import views

app_name = "assistant"
urlpatterns = [
    path("", views.page, name="page"),
    path("api/sessions", views.sessions),
    path("api/sessions/<str:id>", views.session),
    path("api/sessions/<str:id>/messages", views.messages),
]
