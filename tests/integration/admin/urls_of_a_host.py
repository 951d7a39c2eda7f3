from django.contrib import admin
from django.urls import path
from ninja import NinjaAPI

from scheduler.api import router

api = NinjaAPI(urls_namespace="host-with-admin")
api.add_router("/scheduler", router)

urlpatterns = [path("admin/", admin.site.urls), path("host/", api.urls)]
