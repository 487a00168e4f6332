# SPDX-License-Identifier: Apache-2.0
# title: --rw given for the workspace itself means it
# needs: bash
# write: rw
mkdir d; echo x > d/f; cat d/f
