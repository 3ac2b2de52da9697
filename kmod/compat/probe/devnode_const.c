// SPDX-License-Identifier: GPL-2.0
#include <linux/device.h>

static char *kvpool_probe_node(const struct device *dev, umode_t *mode, kuid_t *uid, kgid_t *gid)
{
	return NULL;
}

const struct device_type kvpool_probe = { .devnode = kvpool_probe_node };
