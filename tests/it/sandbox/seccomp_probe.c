/* Tries system calls and tells what became of each: one line, its name and "ok", "errno N", "signal N"
 * or "absent" (this architecture has none of that name). Each is made in a process of its own.
 *
 *   seccomp_probe NAME...     calls with arguments that are wrong in any case
 *   seccomp_probe --special   clone with each flag, sockets of each family, entries of other architectures
 *   seccomp_probe --needed    calls that ordinary programs make
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls that are younger than some distributions' headers: the same numbers everywhere. */
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_statmount
#define SYS_statmount 457
#endif
#ifndef SYS_listmount
#define SYS_listmount 458
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

struct named {
    const char *name;
    long number;
};

static const struct named CALLS[] = {
    {"acct", SYS_acct},
    {"add_key", SYS_add_key},
    {"bpf", SYS_bpf},
    {"chroot", SYS_chroot},
    {"clock_settime", SYS_clock_settime},
    {"delete_module", SYS_delete_module},
    {"fanotify_init", SYS_fanotify_init},
    {"finit_module", SYS_finit_module},
    {"fsconfig", SYS_fsconfig},
    {"fsmount", SYS_fsmount},
    {"fsopen", SYS_fsopen},
    {"fspick", SYS_fspick},
    {"init_module", SYS_init_module},
    {"io_uring_enter", SYS_io_uring_enter},
    {"io_uring_register", SYS_io_uring_register},
    {"io_uring_setup", SYS_io_uring_setup},
    {"kcmp", SYS_kcmp},
    {"kexec_file_load", SYS_kexec_file_load},
    {"kexec_load", SYS_kexec_load},
    {"keyctl", SYS_keyctl},
    {"listmount", SYS_listmount},
    {"migrate_pages", SYS_migrate_pages},
    {"mount", SYS_mount},
    {"mount_setattr", SYS_mount_setattr},
    {"move_mount", SYS_move_mount},
    {"move_pages", SYS_move_pages},
    {"name_to_handle_at", SYS_name_to_handle_at},
    {"open_by_handle_at", SYS_open_by_handle_at},
    {"open_tree", SYS_open_tree},
    {"open_tree_attr", SYS_open_tree_attr},
    {"perf_event_open", SYS_perf_event_open},
    {"pidfd_getfd", SYS_pidfd_getfd},
    {"pivot_root", SYS_pivot_root},
    {"process_madvise", SYS_process_madvise},
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"ptrace", SYS_ptrace},
    {"quotactl", SYS_quotactl},
    {"quotactl_fd", SYS_quotactl_fd},
    {"reboot", SYS_reboot},
    {"request_key", SYS_request_key},
    {"setdomainname", SYS_setdomainname},
    {"sethostname", SYS_sethostname},
    {"setns", SYS_setns},
    {"settimeofday", SYS_settimeofday},
    {"statmount", SYS_statmount},
    {"swapoff", SYS_swapoff},
    {"swapon", SYS_swapon},
    {"syslog", SYS_syslog},
    {"umount2", SYS_umount2},
    {"unshare", SYS_unshare},
    {"userfaultfd", SYS_userfaultfd},
    {"vhangup", SYS_vhangup},
    {"vmsplice", SYS_vmsplice},
    /* Old entries that only some architectures have. */
#ifdef SYS_ioperm
    {"ioperm", SYS_ioperm},
#else
    {"ioperm", -1},
#endif
#ifdef SYS_iopl
    {"iopl", SYS_iopl},
#else
    {"iopl", -1},
#endif
#ifdef SYS_modify_ldt
    {"modify_ldt", SYS_modify_ldt},
#else
    {"modify_ldt", -1},
#endif
#ifdef SYS_umount
    {"umount", SYS_umount},
#else
    {"umount", -1},
#endif
#ifdef SYS_uselib
    {"uselib", SYS_uselib},
#else
    {"uselib", -1},
#endif
};

/* A call and its arguments; what it answers is the child's exit status. */
struct attempt {
    long number;
    long arguments[6];
};

static long make(const struct attempt *a)
{
    return syscall(a->number, a->arguments[0], a->arguments[1], a->arguments[2], a->arguments[3],
                   a->arguments[4], a->arguments[5]);
}

static void report(const char *name, long (*call)(const struct attempt *), const struct attempt *attempt)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        errno = 0;
        long answer = call(attempt);
        _exit(answer >= 0 ? 0 : errno & 0xff);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        printf("%s unknown\n", name);
    else if (WIFSIGNALED(status))
        printf("%s signal %d\n", name, WTERMSIG(status));
    else if (WEXITSTATUS(status) == 0)
        printf("%s ok\n", name);
    else
        printf("%s errno %d\n", name, WEXITSTATUS(status));
}

static int by_name(const char *name)
{
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
        if (strcmp(CALLS[i].name, name) != 0)
            continue;
        if (CALLS[i].number < 0) {
            printf("%s absent\n", name);
            return 0;
        }
        struct attempt attempt = {CALLS[i].number, {-1, -1, -1, -1, -1, -1}};
        report(name, make, &attempt);
        return 0;
    }
    fprintf(stderr, "no probe for %s\n", name);
    return 1;
}

/* clone(2) by its number: the child ends at once. */
static long clone_with(const struct attempt *attempt)
{
    long child = syscall(SYS_clone, attempt->arguments[0], 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    if (child > 0)
        waitpid(child, NULL, __WALL);
    return child;
}

static long clone3_with(const struct attempt *attempt)
{
    struct clone_args arguments = {.flags = attempt->arguments[0], .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0)
        _exit(0);
    return child;
}

/* A number that stands for the i386 table, by the entry that the table has. */
static long compat(const struct attempt *attempt)
{
#ifdef __x86_64__
    long answer;
    __asm__ volatile("int $0x80"
                     : "=a"(answer)
                     : "a"(attempt->number), "b"(attempt->arguments[0]), "c"(attempt->arguments[1]),
                       "d"(attempt->arguments[2])
                     : "memory", "r8", "r9", "r10", "r11");
    if (answer < 0) {
        errno = -answer;
        return -1;
    }
    return answer;
#else
    (void)attempt;
    errno = ENOSYS;
    return -1;
#endif
}

static void try(const char *name, long (*call)(const struct attempt *), long number, long a, long b, long c)
{
    struct attempt attempt = {number, {a, b, c, 0, 0, 0}};
    report(name, call, &attempt);
}

static void special(void)
{
    static const struct named FLAGS[] = {
        {"NEWNS", CLONE_NEWNS},   {"NEWCGROUP", CLONE_NEWCGROUP}, {"NEWUTS", CLONE_NEWUTS},
        {"NEWIPC", CLONE_NEWIPC}, {"NEWUSER", CLONE_NEWUSER},     {"NEWPID", CLONE_NEWPID},
        {"NEWNET", CLONE_NEWNET}, {"nothing", 0},                 {"VFORK", CLONE_VFORK},
    };
    char name[64];
    for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++) {
        snprintf(name, sizeof name, "clone:%s", FLAGS[i].name);
        try(name, clone_with, 0, FLAGS[i].number | SIGCHLD, 0, 0);
    }
    /* Two at once, and bits above those that the kernel knows. */
    try("clone:NEWUSER+NEWNET", clone_with, 0, CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, 0, 0);
    try("clone:NEWUSER+high", clone_with, 0, CLONE_NEWUSER | SIGCHLD | (1L << 40), 0, 0);
    try("clone3:nothing", clone3_with, 0, 0, 0, 0);
    try("clone3:NEWUSER", clone3_with, 0, CLONE_NEWUSER, 0, 0);
    try("clone3:NEWTIME", clone3_with, 0, 0x80, 0, 0);
    for (int family = 0; family < 50; family++) {
        if (family == AF_NETLINK)
            continue;
        snprintf(name, sizeof name, "socket:%d", family);
        try(name, make, SYS_socket, family, SOCK_STREAM, 0);
        snprintf(name, sizeof name, "socketpair:%d", family);
        /* A family that answers at all is one that the filter let through. */
        try(name, make, SYS_socketpair, family, SOCK_STREAM, 0);
    }
    for (int protocol = 0; protocol < 24; protocol++) {
        snprintf(name, sizeof name, "netlink:%d", protocol);
        try(name, make, SYS_socket, AF_NETLINK, SOCK_RAW, protocol);
    }
    /* The kernel looks at the lower half of a family only. */
    try("socket:high+VSOCK", make, SYS_socket, (1L << 32) | AF_VSOCK, SOCK_STREAM, 0);
    try("socket:high+ALG", make, SYS_socket, (1L << 32) | 38, SOCK_SEQPACKET, 0);
    try("netlink:high+NETFILTER", make, SYS_socket, AF_NETLINK, SOCK_RAW, (1L << 32) | NETLINK_NETFILTER);
    try("personality:NO_RANDOMIZE", make, SYS_personality, 0x0040000, 0, 0);
    /* getpid and socket of i386, and of x32. */
    try("i386:getpid", compat, 20, 0, 0, 0);
    try("i386:socket:VSOCK", compat, 359, AF_VSOCK, SOCK_STREAM, 0);
    try("i386:socketcall", compat, 102, 1, 0, 0);
    try("i386:unshare", compat, 310, CLONE_NEWUSER, 0, 0);
#ifdef __x86_64__
    try("x32:getpid", make, 0x40000000 | SYS_getpid, 0, 0, 0);
    try("x32:socket:VSOCK", make, 0x40000000 | SYS_socket, AF_VSOCK, SOCK_STREAM, 0);
    try("x32:unshare", make, 0x40000000 | SYS_unshare, CLONE_NEWUSER, 0, 0);
#endif
}

#define NEED(call) {#call, SYS_##call}

static void needed(void)
{
    static const struct named NEEDED[] = {
        NEED(accept4),       NEED(bind),          NEED(chdir),           NEED(close_range),
        NEED(connect),       NEED(copy_file_range), NEED(dup3),          NEED(epoll_create1),
        NEED(epoll_ctl),     NEED(epoll_pwait),   NEED(eventfd2),        NEED(execve),
        NEED(faccessat),     NEED(fallocate),     NEED(fchdir),          NEED(fchmodat),
        NEED(fchownat),      NEED(fcntl),         NEED(fdatasync),       NEED(fgetxattr),
        NEED(flock),         NEED(fsync),         NEED(ftruncate),       NEED(futex),
        NEED(getdents64),    NEED(getrandom),     NEED(getrusage),       NEED(getsockname),
        NEED(getsockopt),    NEED(inotify_add_watch), NEED(inotify_init1), NEED(io_setup),
        NEED(ioctl),         NEED(kill),          NEED(linkat),          NEED(listen),
        NEED(lseek),         NEED(madvise),       NEED(membarrier),      NEED(memfd_create),
        NEED(mincore),       NEED(mkdirat),       NEED(mknodat),         NEED(mlock),
        NEED(mmap),          NEED(mprotect),      NEED(mq_open),         NEED(mremap),
        NEED(msgget),        NEED(msync),         NEED(munmap),          NEED(nanosleep),
        NEED(newfstatat),    NEED(openat),        NEED(openat2),         NEED(pidfd_open),
        NEED(pipe2),         NEED(ppoll),         NEED(prctl),           NEED(pread64),
        NEED(prlimit64),     NEED(pselect6),      NEED(pwrite64),        NEED(read),
        NEED(readlinkat),    NEED(recvfrom),      NEED(recvmsg),         NEED(renameat2),
        NEED(rseq),          NEED(rt_sigaction),  NEED(rt_sigprocmask),  NEED(sched_getaffinity),
        NEED(sched_setaffinity), NEED(semget),    NEED(sendfile),        NEED(sendmsg),
        NEED(sendto),        NEED(set_robust_list), NEED(setitimer),     NEED(setpgid),
        NEED(setsockopt),    NEED(shmget),        NEED(shutdown),        NEED(sigaltstack),
        NEED(signalfd4),     NEED(splice),        NEED(statfs),          NEED(statx),
        NEED(symlinkat),     NEED(sync_file_range), NEED(syncfs),        NEED(tgkill),
        NEED(timer_create),  NEED(timerfd_create), NEED(truncate),       NEED(uname),
        NEED(unlinkat),      NEED(utimensat),     NEED(wait4),           NEED(waitid),
        NEED(write),         NEED(writev),
    };
    for (size_t i = 0; i < sizeof NEEDED / sizeof *NEEDED; i++) {
        struct attempt attempt = {NEEDED[i].number, {-1, -1, -1, -1, -1, -1}};
        /* No operation of a futex is -1; a queue would be made, and signals go to everybody. */
        if (attempt.number == SYS_futex)
            attempt.arguments[1] = 1;
        if (attempt.number == SYS_msgget)
            attempt.arguments[1] = 0;
        if (attempt.number == SYS_kill || attempt.number == SYS_tgkill)
            attempt.arguments[0] = attempt.arguments[1] = 0x7ffffff0;
        report(NEEDED[i].name, make, &attempt);
    }
}

int main(int count, char **words)
{
    int failed = 0;
    if (count == 2 && strcmp(words[1], "--special") == 0)
        special();
    else if (count == 2 && strcmp(words[1], "--needed") == 0)
        needed();
    else
        for (int i = 1; i < count; i++)
            failed |= by_name(words[i]);
    return failed;
}
