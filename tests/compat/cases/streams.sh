# SPDX-License-Identifier: Apache-2.0
# title: pipes carry every byte in and out, and exit statuses come through
# needs: bash
# input: 8000000
# status: 42
tee >(sha256sum >&2) | sha256sum
head -c 3000000 /dev/zero | tr '\0' '\377'; printf '\0\1\2\377\033[31m'
exit 42
