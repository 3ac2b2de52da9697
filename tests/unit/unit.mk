# Calls that the unit tests' stand-ins take over: those of fake_kernel.h, then
# those of fake_world.h. The Makefile includes this; it has the rules.
UNIT_WRAPPED := open open64 openat openat64 ioctl mmap mmap64 munmap mprotect malloc calloc reallocarray \
	mnl_socket_open2 mnl_socket_bind mnl_socket_close mnl_socket_get_fd \
	mnl_socket_get_portid mnl_socket_sendto mnl_socket_recvfrom mnl_socket_setsockopt \
	pwrite pwrite64 pread pread64 readdir readdir64 fallocate fallocate64 ftruncate ftruncate64 fstatfs fstatfs64 pthread_cond_timedwait kvp_log_append \
	kvp_resolve kvp_resolve_some kvp_pool_find kvp_pool_set kvp_pool_each kvp_pool_destroy kvp_memlock_read
UNIT_WRAPS := $(UNIT_WRAPPED:%=-Wl,--wrap=%)
