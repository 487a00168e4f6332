/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls.h - what the program inside may ask of the kernel.
 *
 * Read by tools/gen_seccomp.c, which turns it into BPF when Caisson is built.
 * Whatever stands in none of the lists is ENOSYS: a call we have not thought
 * about looks to the program like a call this kernel does not have, which is
 * what programs are written to survive.
 *
 *   ALLOW     goes through
 *   REFUSE    EPERM, and the person is told (through the notifier)
 *   EPERM     EPERM, quietly: programs try these as a matter of course
 *   (absent)  ENOSYS: clone3, io_uring_*, openat2 and all that is newer than
 *             this list; every caller of those has a fallback
 *   CHECK     goes through if its arguments pass: see tools/gen_seccomp.c
 */
#pragma once

/* clang-format off */
#define SYSCALLS_ALLOW(X) \
	X(accept) X(accept4) X(access) X(alarm) X(arch_prctl) X(bind) X(brk) X(capget) X(capset) X(chdir) \
	X(chown) X(clock_getres) X(clock_gettime) X(clock_nanosleep) X(close) X(close_range) X(copy_file_range) \
	X(dup) X(dup2) X(dup3) X(epoll_create) X(epoll_create1) X(epoll_ctl) X(epoll_pwait) \
	X(epoll_pwait2) X(epoll_wait) X(eventfd) X(eventfd2) X(execve) X(execveat) X(exit) X(exit_group) \
	X(faccessat) X(faccessat2) X(fadvise64) X(fallocate) X(fchdir) X(fchown) X(fchownat) X(fcntl) X(fdatasync) \
	X(fgetxattr) X(flistxattr) X(flock) X(fork) X(fremovexattr) X(fsetxattr) X(fstat) X(fstatfs) X(fsync) \
	X(ftruncate) X(futex) X(futex_waitv) X(futimesat) X(getcpu) X(getcwd) X(getdents) X(getdents64) X(getegid) \
	X(geteuid) X(getgid) X(getgroups) X(getitimer) X(getpeername) X(getpgid) X(getpgrp) X(getpid) X(getppid) \
	X(getpriority) X(getrandom) X(getresgid) X(getresuid) X(getrlimit) X(get_robust_list) X(getrusage) X(getsid) \
	X(getsockname) X(getsockopt) X(get_thread_area) X(gettid) X(gettimeofday) X(getuid) X(getxattr) \
	X(inotify_add_watch) X(inotify_init) X(inotify_init1) X(inotify_rm_watch) X(ioprio_get) X(ioprio_set) \
	X(kill) X(landlock_add_rule) X(landlock_create_ruleset) X(landlock_restrict_self) X(lchown) X(lgetxattr) \
	X(link) X(linkat) X(listen) X(listxattr) X(llistxattr) X(lremovexattr) X(lseek) X(lsetxattr) X(lstat) \
	X(madvise) X(membarrier) X(memfd_create) X(mincore) X(mkdir) X(mkdirat) X(mlock) X(mlock2) X(mlockall) X(mmap) \
	X(mprotect) X(mq_getsetattr) X(mq_notify) X(mq_open) X(mq_timedreceive) X(mq_timedsend) X(mq_unlink) X(mremap) \
	X(msgctl) X(msgget) X(msgrcv) X(msgsnd) X(msync) X(munlock) X(munlockall) X(munmap) X(nanosleep) X(newfstatat) \
	X(pause) X(pidfd_open) X(pidfd_send_signal) X(pipe) X(pipe2) X(pkey_alloc) X(pkey_free) X(pkey_mprotect) \
	X(poll) X(ppoll) X(prctl) X(pread64) X(preadv) X(preadv2) X(prlimit64) X(pselect6) X(pwrite64) \
	X(pwritev) X(pwritev2) X(read) X(readahead) X(readlink) X(readlinkat) X(readv) X(recvfrom) X(recvmmsg) \
	X(recvmsg) X(removexattr) X(rename) X(renameat) X(renameat2) X(restart_syscall) X(rmdir) X(rseq) \
	X(rt_sigaction) X(rt_sigpending) X(rt_sigprocmask) X(rt_sigqueueinfo) X(rt_sigreturn) X(rt_sigsuspend) \
	X(rt_sigtimedwait) X(rt_tgsigqueueinfo) X(sched_getaffinity) X(sched_getattr) X(sched_getparam) \
	X(sched_get_priority_max) X(sched_get_priority_min) X(sched_getscheduler) X(sched_rr_get_interval) \
	X(sched_setaffinity) X(sched_setattr) X(sched_setparam) X(sched_setscheduler) X(sched_yield) X(select) \
	X(semctl) X(semget) X(semop) X(semtimedop) X(sendfile) X(setfsgid) X(setfsuid) X(setgid) X(setgroups) \
	X(setitimer) X(setpgid) X(setpriority) X(setregid) X(setresgid) X(setresuid) X(setreuid) X(setrlimit) \
	X(set_robust_list) X(setsid) X(setsockopt) X(set_thread_area) X(set_tid_address) X(setuid) X(setxattr) \
	X(shmat) X(shmctl) X(shmdt) X(shmget) X(shutdown) X(sigaltstack) X(signalfd) X(signalfd4) X(splice) X(stat) \
	X(statfs) X(statx) X(symlink) X(symlinkat) X(sync) X(sync_file_range) X(syncfs) X(sysinfo) X(tee) X(tgkill) \
	X(time) X(timer_create) X(timer_delete) X(timerfd_create) X(timerfd_gettime) X(timerfd_settime) \
	X(timer_getoverrun) X(timer_gettime) X(timer_settime) X(times) X(tkill) X(truncate) X(umask) X(uname) X(unlink) \
	X(unlinkat) X(utime) X(utimensat) X(utimes) X(vfork) X(wait4) X(waitid) X(write) X(writev) \
	X(io_setup) X(io_destroy) X(io_getevents) X(io_submit) X(io_cancel) X(io_pgetevents) X(remap_file_pages) \
	X(sysfs) X(adjtimex) \
	/* no kernel has these any more, and refusing them one by one would cost instructions */ \
	X(lookup_dcookie) X(epoll_ctl_old) X(epoll_wait_old) X(vserver)

/* Told to the person: nothing does these by accident. */
#define SYSCALLS_REFUSE(X) \
	X(acct) X(add_key) X(bpf) X(chroot) X(clock_adjtime) X(clock_settime) X(delete_module) X(fanotify_init) \
	X(fanotify_mark) X(finit_module) X(fsconfig) X(fsmount) X(fsopen) X(fspick) X(init_module) X(ioperm) X(iopl) \
	X(kcmp) X(kexec_file_load) X(kexec_load) X(keyctl) X(mount) X(mount_setattr) X(move_mount) \
	X(open_by_handle_at) X(open_tree) X(perf_event_open) X(pidfd_getfd) X(pivot_root) X(process_madvise) \
	X(process_mrelease) X(process_vm_readv) X(process_vm_writev) X(ptrace) X(quotactl) X(quotactl_fd) X(reboot) \
	X(request_key) X(setdomainname) X(sethostname) X(setns) X(settimeofday) X(swapoff) X(swapon) X(syslog) \
	X(umount2) X(unshare) X(userfaultfd) X(vhangup) X(modify_ldt) X(name_to_handle_at) X(memfd_secret) \
	/* long gone, and between the others */ \
	X(_sysctl) X(create_module) X(get_kernel_syms) X(query_module) X(nfsservctl) X(getpmsg) X(putpmsg) \
	X(afs_syscall) X(tuxcall) X(security)

#define SYSCALLS_EPERM(X) \
	X(get_mempolicy) X(mbind) X(migrate_pages) X(move_pages) X(set_mempolicy) X(ustat) X(vmsplice)

/* name, the check in tools/gen_seccomp.c */
#define SYSCALLS_CHECK(X) \
	X(chmod, mode1) X(fchmod, mode1) X(fchmodat, mode2) X(mknod, node1) X(mknodat, node2) \
	X(creat, made1) X(open, open) X(openat, openat) \
	X(clone, clone) X(ioctl, ioctl) X(personality, personality) X(seccomp, seccomp) \
	X(socket, socket) X(socketpair, socketpair) X(connect, connect) \
	X(sendto, send3) X(sendmsg, send2) X(sendmmsg, send3)

/* All that process 1 may do once the program runs. */
#define SYSCALLS_INIT(X) \
	X(read) X(write) X(sendto) X(poll) X(ppoll) X(wait4) X(waitid) X(kill) X(exit) X(exit_group) X(rt_sigreturn) \
	X(rt_sigprocmask) X(restart_syscall) X(close) \
	X(clock_gettime) /* where the vDSO cannot read the clock */
/* clang-format on */
