"""Somebody at a browser: goes to pages, reads, clicks, waits for what comes by itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from selenium.common.exceptions import (
    ElementClickInterceptedException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-component-update", "--disable-sync", "--window-size=1280,1000",
)  # fmt: skip


def open_browser(binary: str, driver: str, *, timezone: str = "UTC", language: str = "en") -> Chrome:
    """Return a headless Chromium whose clock is in `timezone`."""
    options = ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--lang={language}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options=options, service=Service(driver, env=os.environ | {"TZ": timezone}))


class Person:
    """One person with one browser."""

    def __init__(self, browser: Chrome, address: str) -> None:
        self.browser, self.address = browser, address

    def log_in(self, name: str, password: str = "") -> Person:
        """Start afresh: no cookies, nothing remembered."""
        self.go("login/")
        self.browser.delete_all_cookies()
        self.browser.execute_script("localStorage.clear(); sessionStorage.clear()")
        self.go("login/")
        self.find("[name=username]").send_keys(name)
        self.find("[name=password]").send_keys(password or name)
        self.click("form [type=submit]")
        self.wait(lambda: "login" not in self.browser.current_url)
        self.console()
        return self

    def go(self, path: str) -> None:
        self.browser.get(path if path.startswith("http") else self.address + path)

    def find(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        """Click once it stands still: what the page refreshes above it, a line of the banner say, moves it."""
        places: list[Any] = [None]

        def is_clicked() -> bool:
            element = self.find(selector)
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
            place = self.browser.execute_script("return JSON.stringify(arguments[0].getBoundingClientRect())", element)
            places.append(place)
            if places[-2] != place:
                return False
            element.click()
            return True

        self.wait(is_clicked)

    def write(self, selector: str, text: str) -> None:
        element = self.find(selector)
        element.clear()
        element.send_keys(text)

    def text(self, selector: str = "body") -> str:
        """What is read there; the page may be replaced between finding and reading."""
        return self.wait(lambda: (self.find(selector).text,))[0]

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def wait(self, condition: Callable[[], Any], seconds: float = 20) -> Any:
        """Wait until the condition holds, however often the page changes meanwhile."""
        moved = [NoSuchElementException, StaleElementReferenceException, ElementClickInterceptedException]
        return WebDriverWait(self.browser, seconds, 0.2, ignored_exceptions=moved).until(lambda _: condition())

    def console(self) -> list[str]:
        """What the browser complained about since it was last asked."""
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def open_job(self, name: str) -> str:
        """Go to the page of a job by the list, and return its path."""
        self.go(f"scheduler/job/?q={name}")
        self.go(self.find(".sched-name").get_attribute("href"))
        return self.browser.current_url.removeprefix(self.address)
