# SPDX-License-Identifier: Apache-2.0
# title: dash, awk, sed scripts and shebangs
# needs: bash
printf '#!/bin/sh\necho "sh $1"\n' > a; printf '#!/usr/bin/env bash\necho "env $1"\n' > b; printf '#!/usr/bin/awk -f\nBEGIN { print "awk" }\n' > c; printf '#!/usr/bin/perl -w\nprint "perl\\n";\n' > d; printf '#!/usr/bin/env -S python3 -I\nprint("python")\n' > e; printf '#!/nonexistent\n' > f
chmod +x a b c d e f; ./a 1; ./b 2; ./c; ./d; ./e; ./f 2>/dev/null; echo "missing interpreter: $?"
cp /usr/bin/true t; ./t; echo "own copy: $?"; t=$(mktemp) && cp a "$t" && chmod +x "$t" && "$t" 3; rm -f "$t"; ./nothing 2>/dev/null; echo $?; touch g; ./g 2>/dev/null; echo $?
