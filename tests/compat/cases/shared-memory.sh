# SPDX-License-Identifier: Apache-2.0
# title: /dev/shm, POSIX and System V shared memory and semaphores
# needs: python3 gcc
[ -d /dev/shm ] && [ -w /dev/shm ] && echo 'there'
head -c 100000 /dev/zero > "/dev/shm/compat.$$" && stat -c %s "/dev/shm/compat.$$"; rm "/dev/shm/compat.$$"
cat > s.c <<'C'
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	char name[32];
	snprintf(name, sizeof name, "/compat-%d", (int)getpid());
	int fd = shm_open(name, O_CREAT | O_RDWR, 0600), id;
	char *p, *q;
	sem_t *s;
	if (fd < 0 || ftruncate(fd, 4096)) perror("shm_open");
	p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!fork()) { strcpy(p, "posix"); _exit(0); }
	wait(0); puts(p); shm_unlink(name);
	s = sem_open(name, O_CREAT, 0600, 0);
	if (s == SEM_FAILED) perror("sem_open"); else { if (!fork()) { sem_post(s); _exit(0); } sem_wait(s); wait(0); puts("semaphore"); sem_unlink(name); }
	id = shmget(IPC_PRIVATE, 4096, 0600); q = shmat(id, 0, 0);
	if (id < 0 || q == (void *)-1) perror("shmget"); else { if (!fork()) { strcpy(q, "system v"); _exit(0); } wait(0); puts(q); shmdt(q); shmctl(id, IPC_RMID, 0); }
	id = semget(IPC_PRIVATE, 1, 0600); puts(id < 0 ? "no semget" : "semget"); if (id >= 0) semctl(id, 0, IPC_RMID);
	return 0;
}
C
gcc -w -o s s.c && ./s
