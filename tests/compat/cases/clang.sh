# SPDX-License-Identifier: Apache-2.0
# title: clang compiles
# needs: clang
printf '#include <stdio.h>\nint main(void) { puts("clang"); return 5; }\n' > a.c; clang -O2 -o a a.c && ./a; echo $?
