/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sys.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>

/* The order is the point: the bounding set and the securebits need CAP_SETPCAP,
 * which the last step takes away; done the other way round they fail silently
 * unless somebody looks at the return value. */
static int bound_caps(uint64_t keep)
{
	for (int cap = 0; cap < 64; cap++) {
		if (keep >> cap & 1 || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && cap > 30)
			break; /* past the last capability of this kernel */
		return -1;
	}
	return 0;
}

int sys_drop_caps(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (bound_caps(0) < 0)
		return -1;
	if (prctl(PR_SET_SECUREBITS,
		  SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
			  SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		  0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_capset, &head, none);
}

/* Without CAP_SETPCAP, which is not to be kept, nobody changes the bits again: no lock is needed. */
int sys_keep_caps(uint64_t keep)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct some[2] = { { .effective = (uint32_t)keep, .permitted = (uint32_t)keep },
						  { .effective = (uint32_t)(keep >> 32), .permitted = (uint32_t)(keep >> 32) } };

	if (bound_caps(keep) < 0 || prctl(PR_SET_SECUREBITS, SECBIT_NO_CAP_AMBIENT_RAISE, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_capset, &head, some);
}
