/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sys.h"

#include "base/cleanup.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int sys_loopback_up(void)
{
	CS_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* any family carries SIOCSIFFLAGS */
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fd < 0)
		return -1;
	return ioctl(fd, SIOCSIFFLAGS, &ifr);
}
