# SPDX-License-Identifier: Apache-2.0
# title: a program that dies of a signal says so
# needs: bash
# status: 134
echo before; kill -ABRT $$
