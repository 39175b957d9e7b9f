"""The one settings file. What an installation may change comes from the environment (names: README, "Settings")."""

import sys
from pathlib import Path
from typing import Any

import structlog
from django.utils.csp import CSP
from django.utils.translation import gettext_lazy as _

from snackops import postgresql
from snackops.env import Env, secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
env = Env()

DATA_DIR = env.folder("SNACKOPS_DATA", BASE_DIR / ".data")

DEBUG = env.flag("DEBUG", default=False)
SECRET_KEY = secret_key(env, DATA_DIR)
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
HTTPS = env.flag("SNACKOPS_HTTPS", default=False)
BEHIND_PROXY = env.flag("SNACKOPS_TRUST_PROXY", default=False)
CSRF_TRUSTED_ORIGINS = env.names("CSRF_TRUSTED_ORIGINS", [])

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "axes",
    "queue_app",
]

MIDDLEWARE = [
    "queue_app.views.frame.NoStoreMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "queue_app.views.frame.CompressMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "queue_app.views.sessions.SessionLimits",
    "queue_app.views.frame.PreferenceMiddleware",
    "queue_app.views.frame.SignInGate",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "queue_app.views.refusals.RefusalMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "snackops.urls"
WSGI_APPLICATION = "snackops.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# --- database: DESIGN section 10 ------------------------------------------------------------------------------------
DATABASES = {"default": env.database("DATABASE_URL", DATA_DIR / "snackops.sqlite3")}
SQLITE_WAL = env.flag("SNACKOPS_SQLITE_WAL", default=False)
PG_STATEMENT_S = env.integer("SNACKOPS_PG_STATEMENT_S", 30, low=1, high=3_600)
PG_POOL = env.integer("SNACKOPS_PG_POOL", 10, low=1, high=500)
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # PERSIST + FULL survives a power cut after an acknowledged commit; DELETE + FULL would not, because it never syncs
    # the directory after the journal is unlinked. IMMEDIATE takes the write lock at BEGIN, where waiting is safe.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": env.integer("SNACKOPS_SQLITE_TIMEOUT_S", 20, low=1, high=300),
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA recursive_triggers=ON;"
        if SQLITE_WAL
        else "PRAGMA journal_mode=PERSIST;PRAGMA synchronous=FULL;PRAGMA recursive_triggers=ON;",
    }
    DATABASES["default"]["CONN_MAX_AGE"] = None
else:
    DATABASES["default"] = postgresql.settings(DATABASES["default"], statement_s=PG_STATEMENT_S, pool_size=PG_POOL)

# --- people ---------------------------------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "sign_in"
AXES_FAILURE_LIMIT = env.integer("SNACKOPS_SIGN_IN_TRIES", 5, low=1, high=100)
AXES_COOLOFF_TIME = 0.25  # hours: a delay, not a lockout that only an administrator ends
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]  # a stranger elsewhere cannot lock somebody out
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # trying again early does not make the wait longer
AXES_LOCKOUT_CALLABLE = "queue_app.views.account.locked_out"
AXES_VERBOSE = False
AXES_HANDLER = "queue_app.views.throttle.Throttle"
AXES_CLIENT_IP_CALLABLE = "queue_app.views.throttle.client_address"
AXES_DISABLE_ACCESS_LOG = True  # the record of the product keeps sign-ins
SIGN_IN_TRIES_PER_ADDRESS = env.integer("SNACKOPS_SIGN_IN_TRIES_PER_ADDRESS", 50, low=1, high=100_000)
SESSION_IDLE_S = env.integer("SNACKOPS_SESSION_IDLE_MIN", 120, low=1, high=1_440) * 60  # without a person at it
SESSION_COOKIE_AGE = env.integer("SNACKOPS_SESSION_HOURS", 12, low=1, high=168) * 3600  # in all
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
SOLO_APPROVAL = env.flag("SNACKOPS_SOLO_APPROVAL", default=False)

# --- web security ---------------------------------------------------------------------------------------------------
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "connect-src": [CSP.SELF],
    "font-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
    "base-uri": [CSP.NONE],
    "object-src": [CSP.NONE],
}
CSRF_FAILURE_VIEW = "queue_app.views.errors.csrf_failed"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if HTTPS:
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = True
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    LANGUAGE_COOKIE_NAME = "__Host-language"
if BEHIND_PROXY:  # only then may a header say that the request came by https
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_000_000
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_000

# --- languages and time ---------------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("ja", _("Japanese")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "snackops" / "locale"]
USE_TZ = True
USE_THOUSAND_SEPARATOR = False  # ids and values in forms are never grouped; the filter `number` groups in text
TIME_ZONE = env.time_zone("SNACKOPS_TIME_ZONE", "UTC")

# --- static files ---------------------------------------------------------------------------------------------------
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

# --- delivery -------------------------------------------------------------------------------------------------------
RECEIVER_URL = env.http_url("SNACKOPS_RECEIVER_URL", "http://127.0.0.1:8081")
DELIVERY_CONNECT_MS = env.integer("SNACKOPS_CONNECT_MS", 3_000, low=1, high=600_000)
DELIVERY_READ_MS = env.integer("SNACKOPS_READ_MS", 5_000, low=1, high=600_000)
DELIVERY_TOTAL_MS = env.integer("SNACKOPS_TOTAL_MS", 10_000, low=1, high=600_000)

# --- backups ----------------------------------------------------------------------------------------------------------
PG_BIN = env.text("SNACKOPS_PG_BIN")  # folder of pg_dump and pg_restore; empty: looked for

# --- logs: one JSON object a line; never a payload, a note's comment or a raw error ------------------------------------
LOG_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(sort_keys=True),
            ],
            "foreign_pre_chain": LOG_SHARED,
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": sys.stderr}},
    "root": {
        "handlers": ["stderr"],
        "level": env.one_of("SNACKOPS_LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
    },
    "loggers": {
        "django.request": {"level": "ERROR"},
        "axes": {"level": "WARNING"},
        "psycopg": {"level": "CRITICAL"},  # it logs the server's raw words; the loops and pages log our own
    },
}
structlog.configure(
    processors=[*LOG_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)
