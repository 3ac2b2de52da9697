// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads of the library's own. */
#include <signal.h>

#include "transaction.h"

int kvp_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	/* A thread raises these itself: blocked, they end the process past its handler. */
	static const int own[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, 0 };
	sigset_t others, before;
	const int *signal;
	int err;

	sigfillset(&others);
	for (signal = own; *signal; signal++)
		sigdelset(&others, *signal);
	pthread_sigmask(SIG_SETMASK, &others, &before);
	err = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}
