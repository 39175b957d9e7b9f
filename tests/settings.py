"""The product's settings, on data of a test run.

Loaded before any other code of the product (`--ds` in pyproject.toml), because the settings file makes its folder while
it is read: a run of the tests must never touch the data of whoever runs it. Each process of a run has its own folder,
removed at the end by tests/conftest.py. Child processes get the product's own settings module, on the same folder.
"""

import os
import shutil
import tempfile
from pathlib import Path

# A commit waits for the disk four times. No test cuts the power (tests/faults/test_durability.py counts the calls instead),
# so the files lie in memory where there is plenty of it.
if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 2 * 1024**3:  # noqa: S108
    os.environ["SNACKOPS_DATA"] = tempfile.mkdtemp(prefix="snackops-tests-", dir="/dev/shm")
else:
    os.environ["SNACKOPS_DATA"] = tempfile.mkdtemp(prefix="snackops-tests-")
os.environ["DJANGO_SETTINGS_MODULE"] = "snackops.settings"
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright's sync API runs an event loop in this thread

from snackops.settings import *  # noqa: F403
from snackops.settings import DATA_DIR, DATABASES, STATIC_ROOT

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # a file, never :memory:, so that several processes can meet in it and the journal's rules are the product's
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
Path(STATIC_ROOT).mkdir()  # whitenoise warns when it is missing
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick; the product's own are tested by name
