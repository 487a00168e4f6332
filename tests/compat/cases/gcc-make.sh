# SPDX-License-Identifier: Apache-2.0
# title: gcc and make -j4 build a library and a program
# needs: gcc make ar
for i in $(seq 12); do printf '#include <stdio.h>\n#include <math.h>\nint f%d(int x);\nint f%d(int x) { printf("f%d\\n"); return x + (int)sqrt(%d.0 * x); }\n' $i $i $i $i > f$i.c; done
{ for i in $(seq 12); do echo "int f$i(int);"; done; echo 'int main(void) { int r = 0;'; for i in $(seq 12); do echo "r += f$i(r);"; done; echo 'return r & 127; }'; } > main.c
cat > Makefile <<'MK'
OBJS := $(patsubst %.c,%.o,$(wildcard f*.c))
all: prog static shared
prog: main.o libf.a ; $(CC) -o $@ $^ -lm
static: main.o libf.a ; $(CC) -static -o $@ $^ -lm
libf.a: $(OBJS) ; $(AR) rcs $@ $^
libf.so: $(OBJS) ; $(CC) -shared -o $@ $^ -lm
shared: main.o libf.so ; $(CC) -o $@ main.o -L. -lf -Wl,-rpath,'$$ORIGIN' -lm
%.o: %.c ; $(CC) -g -O2 -fPIC -Wall -c -o $@ $<
MK
make -s -j4 2>&1; echo "make $?"
./prog > 1; echo $?; ./static > 2; echo $?; ./shared > 3; echo $?; cmp 1 2 && cmp 2 3 && wc -l < 3
make -s -j4 -q; echo "up to date: $?"; touch f3.c; make -s -n 2>/dev/null | grep -c 'f3.o'
gcc -x c -O2 -flto -pthread -o thr - <<'C' && ./thr
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int n;
static void *run(void *a) { for (int i = 0; i < 1000; i++) n++; return a; }
int main(void) { pthread_t t[8]; for (int i = 0; i < 8; i++) pthread_create(&t[i], 0, run, 0); for (int i = 0; i < 8; i++) pthread_join(t[i], 0); printf("%d\n", n); }
C
echo 'int main(void) { return *(volatile int *)0; }' | gcc -x c -o crash - && ./crash; echo "crash $?"; ls core* 2>/dev/null
echo 'int main(void) { int a[2]; a[2] = 1; return a[2]; }' | gcc -x c -fsanitize=address -w -o asan - 2>/dev/null && { ./asan 2>&1 | grep -c 'stack-buffer-overflow'; }
ar t libf.a | sort | head -3; nm prog | grep -c ' T f'; strip prog && ./prog | tail -1
