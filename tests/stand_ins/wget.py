"""Play ``wget -q -O /dev/null URL``: whether the address answers well."""

import sys
import urllib.error
import urllib.request

try:
    urllib.request.urlopen(sys.argv[-1], timeout=5).close()  # noqa: S310
except (OSError, urllib.error.URLError) as error:
    sys.exit(str(error))
