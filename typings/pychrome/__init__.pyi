"""Types of pychrome 0.2.4, as far as `cdp` uses it. Only for type checkers."""

from pychrome.exceptions import CallMethodException as CallMethodException
from pychrome.exceptions import PyChromeException as PyChromeException
from pychrome.exceptions import RuntimeException as RuntimeException
from pychrome.exceptions import TabConnectionException as TabConnectionException
from pychrome.exceptions import TimeoutException as TimeoutException
from pychrome.exceptions import UserAbortException as UserAbortException
from pychrome.tab import Tab as Tab

__version__: str
