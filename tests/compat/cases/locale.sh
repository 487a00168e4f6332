# SPDX-License-Identifier: Apache-2.0
# title: locale and time zone are the host's
# needs: bash
locale; date -d @1000000000; date +%Z%z -d @1000000000; readlink -f /etc/localtime
TZ=America/New_York date -d @1000000000; TZ=Asia/Kolkata date +%z
printf '%s\n' Zebra apple Äpfel zebra | sort; locale -a | sort | head -20; python3 -c 'import time, sys; print(time.tzname, sys.getfilesystemencoding(), sys.stdout.encoding)'
cal 1 2001 2>/dev/null | head -2; printf "%'d\n" 1234567; locale charmap
