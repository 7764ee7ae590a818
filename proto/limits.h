/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits - every maximum of lockstep, with its reason.
 *
 * Units are in the names. What happens at a limit is said where it is used; it is
 * always counted.
 */
#ifndef LS_PROTO_LIMITS_H
#define LS_PROTO_LIMITS_H

/* --- names (terminator included; TPU VM and pod names stay below 64, RFC 1123: 253) --- */
#define LS_JOB_NAME_MAX_BYTES 128
#define LS_HOST_NAME_MAX_BYTES 128
#define LS_SLICE_NAME_MAX_BYTES 64
#define LS_ROLE_NAME_MAX_BYTES 64
#define LS_REFUSED_RANK_MAX_BYTES 48 /* of a variable that is no rank, with its name */
#define LS_PLACE_NAME_MAX_BYTES 64 /* a rack, an input shard */

/* --- log and configuration ------------------------------------------------ */
#define LS_LOG_LINE_MAX_BYTES 1024
#define LS_LOG_BURST 10u
#define LS_LOG_WINDOW_NS 10000000000ull
#define LS_CONF_VALUE_MAX_BYTES 512
#define LS_CONF_FILE_MAX_BYTES 262144
#define LS_CONF_OPTIONS_MAX 64
#define LS_CONF_NAME_MAX_BYTES 64
#define LS_JSON_DEPTH_MAX 32

/* --- one step record ------------------------------------------------------ */
/* a phase of a month is a lie */
#define LS_PHASE_MAX_NS (30ull * 24 * 3600 * 1000000000)
#define LS_BARRIERS_MAX 4 /* DESIGN 11: a step holds up to four */
#define LS_WORK_MAX 6
#define LS_PEERS_MAX 4 /* neighbours of a ring, twice for two dimensions */

/* --- step ring ------------------------------------------------------------ */
#define LS_RING_SLOTS 4096u
#define LS_RING_SLOTS_MAX 1048576u
/* records of a ring in its life: a mark each 100 us for three years */
#define LS_RING_HEAD_MAX (1ull << 40)
#define LS_RING_ENV_MAX_BYTES 2048
#define LS_RING_HEADER_MAX_BYTES 65536 /* later versions add at the end */
#define LS_RING_SLOT_MAX_BYTES 4096
/* jitted functions a process: a training loop has a few */
#define LS_RING_FUNCTIONS_MAX 32
#define LS_RING_FUNCTION_NAME_MAX_BYTES 96
#define LS_CHIPS_PER_WORKER_MAX 4096 /* a TPU host drives 1 to 8 */
#define LS_RINGS_MAX 64 /* workers a host; TPU hosts run 1 to 8 */

/* --- wire ----------------------------------------------------------------- */
#define LS_REPORT_MAX_BYTES (1024 * 1024) /* what either side receives at most */
#define LS_ACK_MAX_BYTES 65536
#define LS_ITEM_MAX_BYTES 131072 /* one numbered item */
#define LS_ITEMS_PER_REPORT_MAX 256
#define LS_RECORDS_PER_ITEM_MAX 512
#define LS_WORKERS_PER_REPORT_MAX LS_RINGS_MAX
/* 146 years of uptime: leaves room for sums */
#define LS_WIRE_TIME_MAX_NS (1ull << 62)
/* of an item, and of its records: leaves room for sums in 63 bits */
#define LS_WIRE_NUMBER_MAX (1ull << 62)
/* memory to decode a message, per byte of it */
#define LS_WIRE_ARENA_FACTOR 16u
/* and for any: full lists of a report take 103 KiB, and leave gaps */
#define LS_WIRE_ARENA_BASE_BYTES 163840u
#define LS_HOT_MAX 16 /* DESIGN 11: at most 16 hot series */
#define LS_BEAT_DEFAULT_NS 1000000000ull
#define LS_BEAT_MIN_NS 100000000ull
#define LS_BEAT_MAX_NS 60000000000ull

/* --- series, chunks, identity --------------------------------------------- */
/* series a host: 60 of the host, 8 chips x 60, links, peers */
#define LS_SERIES_MAX 1024u
/* groups a host: a source and cadence, or a worker */
#define LS_GROUPS_MAX 64u
#define LS_SERIES_PER_GROUP_MAX 512u
#define LS_GROUP_NAME_MAX_BYTES 64
#define LS_SERIES_NAME_MAX_BYTES 96 /* the longest of libtpu has 80 */
#define LS_SERIES_LABELS_MAX_BYTES 160
#define LS_SERIES_TEXT_MAX_BYTES (LS_SERIES_NAME_MAX_BYTES + LS_SERIES_LABELS_MAX_BYTES)
#define LS_CHUNK_NS 60000000000ull /* a chunk is sealed after a minute */
#define LS_CHUNK_ROWS_MAX 600u /* or so many rows: a minute at 10 Hz */
/* 512 columns x 60 rows that do not compress would be cut */
#define LS_CHUNK_BODY_MAX_BYTES 131072u
/* the largest dictionary: 132,184 */
#define LS_CHUNK_ITEM_MAX_BYTES (LS_CHUNK_BODY_MAX_BYTES + 2048u)
/* 489 bytes in a leaf and four overflow pages of 4 KiB, all of them full; 5 bytes of
 * these are the record's head */
#define LS_BODY_PART_BYTES (489 + 4 * 4092 - 5)
#define LS_CHUNK_ITEMS_PER_REPORT_MAX 64
/* DESIGN 11: a zoom ends unless renewed */
#define LS_ZOOM_MAX_NS 120000000000ull
/* a reading an hour: slower is no measuring */
#define LS_SLOWED_MAX 3600u
#define LS_IDENTITY_FIELDS_MAX 128u
#define LS_IDENTITY_KEY_MAX_BYTES 48
/* worker-network-endpoints are cut: only our own is kept */
#define LS_IDENTITY_VALUE_MAX_BYTES 256
#define LS_IDENTITY_SOURCE_MAX_BYTES 24

/* --- keys ------------------------------------------------------------------ */
#define LS_KEYS_FILE_MAX_BYTES 1048576u /* read of a file: 500 CA certificates */
#define LS_KEYS_LOOK_NS 10000000000ull /* a change of the files is seen by then */
#define LS_TLS_CHAIN_MAX_BYTES \
	16384 /* certificates of a peer: four of RSA have 6 KiB */
#define LS_TLS_SESSION_S 604800 /* RFC 8446, 4.6.1: seven days at most */
/* a message about a certificate with the longest name, all of it escaped */
#define LS_TLS_TEXT_MAX_BYTES 512
/* read at a time of what is encrypted: a record of TLS */
#define LS_TLS_CHUNK_BYTES 16384u
/* encrypted at a time: the largest answer with its frame */
#define LS_TLS_SLICE_BYTES (LS_ACK_MAX_BYTES + 64)
/* handshakes under way in a collector: 800 with a ClientHello and no more took 51.2 KiB
 * resident each (OpenSSL 3.0.19), hence 13 MiB */
#define LS_TLS_HANDSHAKES_MAX 256u
/* when there are so many: time until one is closed, and if nothing came */
#define LS_TLS_HANDSHAKE_NS 2000000000ull
#define LS_TLS_SILENT_NS 500000000ull
#define LS_KEYS_WARN_S 2592000 /* so long before it a certificate is said to expire */
#define LS_KEYS_EARLY_S 3600 /* certificates and lists begin so early: clocks differ */

/* --- agent ---------------------------------------------------------------- */
#define LS_SPOOL_DEFAULT_BYTES (64ull * 1024 * 1024)
#define LS_SPOOL_MIN_BYTES (1024ull * 1024)
#define LS_SPOOL_LARGEST_BYTES (16ull * 1024 * 1024 * 1024)
#define LS_METRICS_MAX 512
#define LS_SOURCES_MAX 16 /* there is a line of code for each */
/* /proc/stat of a 1,000-CPU host is 120 kB */
#define LS_PROC_FILE_MAX_BYTES 262144
/* schedstat is summed over at most so many */
#define LS_THREADS_PER_WORKER_MAX 1024
/* a process that is killed for lack of memory has ended by then: it frees 1 TiB first */
#define LS_WORKER_KILLED_NS 60000000000ull
/* vmstat costs a third of all: read each tenth time */
#define LS_SLOW_FACTOR 10u
#define LS_DISKS_MAX 64
#define LS_DISK_NAME_MAX_BYTES 32 /* DISK_NAME_LEN of the kernel */
#define LS_PATH_MAX_BYTES 1024
/* leaves read: each costs 12 us a reading */
#define LS_CGROUPS_MAX 256u
/* kubepods/burstable/pod/container is four */
#define LS_CGROUP_DEPTH_MAX 6u
#define LS_CGROUP_PATH_MAX_BYTES 384 /* a container of Kubernetes has 170 */
/* listed anew each sixth slow reading: a minute */
#define LS_CGROUPS_LIST_TURNS 6u
/* series; half of them are the top ones now */
#define LS_NEIGHBOURS_MAX 16u
/* less CPU between two readings is nobody's trouble */
#define LS_NEIGHBOUR_MIN_S 0.01
/* readings that a series outlives its group's activity */
#define LS_NEIGHBOUR_QUIET 30u
/* a scan of the steps directory; the next scan goes on where this one stopped */
#define LS_STEPS_NAMES_MAX 65536u /* entries listed: 10 ms */
#define LS_STEPS_LOOKS_MAX 16384u /* of these, names not known: a stat each, 20 ms */
#define LS_STEPS_OPENS_MAX 1024u /* of these, files opened: 10 ms */
#define LS_STEPS_OWNER_OPENS_MAX 768u /* of one owner, so that others have a share */
#define LS_STEPS_OWNERS_MAX 32u /* owners told apart; all others are one owner */
#define LS_STEPS_REJECTED_MAX 65536u /* files remembered, 48 bytes each */
/* rejected files checked for a change, a scan */
#define LS_STEPS_RECHECK_MAX 64u
/* a watched or unchanged directory is scanned so often, for rejected files that became
 * rings */
#define LS_STEPS_RESCAN_NS 30000000000ull
/* unfinished rings go then: making one takes milliseconds */
#define LS_LEFTOVER_AGE_NS 600000000000ull
#define LS_LEFTOVERS_MAX 16u /* watched at a time; others wait */
/* descriptors that no ring takes: connection, HTTP, log, directories */
#define LS_FDS_KEPT 8
#define LS_STEPS_READ_MAX 8192u /* records taken from one ring a turn */
/* of 310 bytes at most: always below LS_ITEM_MAX_BYTES */
#define LS_STEPS_PER_ITEM 256u
/* an all-acknowledged spool is emptied from here */
#define LS_SPOOL_COMPACT_BYTES (1024ull * 1024)
/* a report waits so long for items that are being written */
#define LS_SPOOL_WAIT_NS 50000000ull
/* encoded items that wait for the disk: more than a minute of the largest host */
#define LS_SPOOL_UNWRITTEN_MAX_BYTES (512u * 1024)
#define LS_SPOOL_RINGS_MAX (2 * LS_RINGS_MAX) /* cursors kept */
/* items a report, so that live values come on time */
#define LS_REPORT_ITEMS_BYTES 262144u
/* chunk items a report: any one of them, or a minute of most hosts */
#define LS_REPORT_CHUNK_BYTES LS_CHUNK_ITEM_MAX_BYTES
/* remembered as sent; an older one is sent again, which is harmless */
#define LS_SPOOL_DICTIONARIES_MAX 256u
/* a second: 40 MB/s when 10,000 agents come back; a day in an hour */
#define LS_BACKFILL_DEFAULT_BYTES 4096u
#define LS_BACKFILL_MIN_BYTES 256u
#define LS_BACKFILL_MAX_BYTES (64u * 1024 * 1024)
/* in memory, touched as far as used: 140 series at 1 Hz take 80 KiB a minute, and
 * LS_SERIES_MAX at 10 Hz are sealed each 11 s */
#define LS_MINUTE_MAX_BYTES (1024u * 1024)
#define LS_MINUTE_OLD_MAX_BYTES (8u * 1024 * 1024) /* of a file of an earlier version */
/* losses told apart: by group, and those of all others */
#define LS_LOSSES_MAX (LS_GROUPS_MAX + 1)
/* a pause before connecting is between 0 and this, which doubles */
#define LS_RECONNECT_MIN_NS 250000000ull
/* up to this: 10,000 agents bring 4,000 connections a second */
#define LS_RECONNECT_MAX_NS 5000000000ull
/* to connect: four times TCP asks */
#define LS_EXCHANGE_PATIENCE_NS 10000000000ull
/* times that to be greeted: a collector's kernel holds 4,096 connections in line, and a
 * handshake of TLS takes its core 3 ms; who leaves the line early is served in vain */
#define LS_EXCHANGE_LINE_FACTOR 6u
/* requests, one after the other: nobody is there, whatever TCP thinks */
#define LS_EXCHANGE_UNANSWERED_MAX 2u
/* without an answer: we give up and report anew */
#define LS_ACK_TIMEOUT_NS 15000000000ull
/* pause after an answer that makes no sense */
#define LS_BAD_ACK_HOLD_NS 1000000000ull
#define LS_REJECT_HOLD_NS 30000000000ull /* and after a refusal */
/* refusals of one item until a gap replaces it: no chance event repeats so often */
#define LS_MALFORMED_TIMES 3u
/* time to send what is pending at SIGTERM */
#define LS_DRAIN_NS 2000000000ull
#define LS_BUDGET_WINDOW_NS 10000000000ull /* our own use is judged so often */
#define LS_BUDGET_WINDOWS_A_MINUTE 6u
/* sampling is never slowed more: findings need data */
#define LS_BUDGET_FACTOR_MAX 8u
/* of the budget: below it there is room to go back */
#define LS_BUDGET_CALM_RATIO 0.7
/* of the budget: one window is enough to slow down */
#define LS_BUDGET_FAR_RATIO 4.0
/* calm windows until a step back: a minute */
#define LS_BUDGET_NEED_MIN 6u
#define LS_BUDGET_NEED_MAX 360u /* and at most: an hour */
/* beats are slowed to this: half of what makes us stale */
#define LS_BUDGET_BEAT_MAX_NS 5000000000ull
/* twice the pace of a source, for its first answers */
#define LS_DOCTOR_LOOK_NS 2500000000ull
/* a collector that does not answer by then is not reached */
#define LS_DOCTOR_CONNECT_NS 2000000000ull
#define LS_AGENT_HTTP_CONNECTIONS_MAX 16 /* probes, a scrape, a person */
#define LS_AGENT_HTTP_TIMEOUT_NS 10000000000ull
/* an address that is taken is tried again */
#define LS_AGENT_HTTP_RETRY_NS 60000000000ull
#define LS_AGENT_HTTP_HEADER_MAX_BYTES 4096
#define LS_AGENT_HTTP_BODY_MAX_BYTES 1024 /* nothing takes one */
/* answers that clients have still to read, all together */
#define LS_AGENT_HTTP_UNREAD_MAX_BYTES (8u * 1024 * 1024)
/* dialled, sent, came, cancelled: one of each at a time */
#define LS_EXCHANGE_NOTES_MAX 8

#define LS_HTTP_GET_HEADER_MAX_BYTES 16384 /* of an answer to the agent */
#define LS_HTTP_INTERIM_MAX 4u /* 100 Continue before an answer */
/* one each: spool, minute file, log of a job */
#define LS_DISK_JOBS_MAX 8
/* a file operation that takes longer is reported */
#define LS_DISK_STALL_NS 3000000000ull
#define LS_DISK_LOOK_NS 1000000ull /* between two looks while the agent ends */
/* at the end: a file operation that takes longer is left to the kernel */
#define LS_DISK_STOP_NS 5000000000ull
#define LS_LOG_TAIL_LINE_MAX_BYTES 4096 /* a step's line has 250 */
/* a reading: a job that logs 256 KiB a second is ill */
#define LS_LOG_TAIL_READ_MAX_BYTES 262144u
/* a minute at the maximum pace: then the agent skips to the end */
#define LS_LOG_TAIL_BEHIND_MAX_BYTES 16777216u
/* looked back after a restart: 4,000 lines of steps */
#define LS_STEP_LOG_BACK_BYTES 1048576u
/* without a step's line: then the doctor says so */
#define LS_STEP_LOG_UNKNOWN_BYTES 10485760u
#define LS_STEP_LOG_PENDING_MAX 4096u /* lines taken at a time */
/* a line of some formats stands for so many steps at most */
#define LS_STEP_LOG_STRIDE_MAX 1000u
/* first lines of an attempt: what they take beyond their seconds is compilation */
#define LS_STEP_LOG_FIRST_MAX 5u
#define LS_STEP_LOG_REPEATS_MIN \
	3u /* so many steps logged twice: several workers write */
/* without a step: then the agent warns */
#define LS_STEP_LOG_UNKNOWN_LINES 100u
#define LS_STEP_LOG_UNKNOWN_NS 60000000000ull
#define LS_STEP_LOG_SHOWN_MAX_BYTES 80 /* of the first unknown line */
/* of a line of a log and a pattern: calls of the matcher, and its memory */
#define LS_STEP_PATTERN_MATCH_MAX 100000u
#define LS_STEP_PATTERN_HEAP_MAX_KIB 512u
/* of a page: a sample of the GKE device plugin has 400 */
#define LS_PROM_LINE_MAX_BYTES 4096
#define LS_PROM_NAME_MAX_BYTES 256
#define LS_PROM_LABELS_MAX 32
#define LS_PROM_SAMPLES_MAX 20000u /* node_exporter gives some 2,000 */
#define LS_PROM_PAGE_MAX_BYTES 4194304u /* so many of 200 bytes */
#define LS_PROM_PAGES_MAX 8
/* the built-in ones, and a hundred of a site's */
#define LS_PROM_RULES_MAX 128
/* labels kept of a sample: a series has 160 bytes of them */
#define LS_PROM_KEEP_MAX 4
#define LS_PROM_KEEP_NAME_MAX_BYTES 48
#define LS_PROM_MAP_MAX_BYTES 65536
/* taken of a page: 8 chips x 5, and some histograms */
#define LS_PROM_SERIES_MAX 256u
#define LS_PROM_CHIPS_MAX 64u /* told apart on a page; a host has 8 */
/* the GKE device plugin measures every 10 s */
#define LS_PROM_INTERVAL_NS 10000000000ull
#define LS_PROM_ABSENT_NS 60000000000ull /* where nobody listens */
#define LS_PROM_DEADLINE_NS 2000000000ull /* of one page */
/* 5 min without a change, while the job steps */
#define LS_PROM_FROZEN_READINGS 30u
/* 10 min without it: a series, or a page, is forgotten */
#define LS_PROM_GONE_READINGS 60u

/* --- chips and identity of a host ----------------------------------------- */
#define LS_CHIPS_MAX 32 /* chips a host; 8 is the most there is */
#define LS_CHIP_NODES_MAX 4 /* PCI functions a chip; 7x has 2 */
/* entries of /sys/bus/pci/devices looked at */
#define LS_PCI_SCAN_MAX 8192u
/* entries of /dev looked at for /dev/accelN */
#define LS_NODES_SCAN_MAX 4096u
/* fds looked at in 10 s: about 2 ms of CPU */
#define LS_OWNER_LINKS_PER_TURN 1024u
/* fds of one process; devices are opened early */
#define LS_OWNER_LINKS_PER_PROCESS 8192u
/* TASK_COMM_LEN is 16; 4 each when escaped */
#define LS_COMMAND_MAX_BYTES 64
#define LS_CHIPS_RESCAN_NS 600000000000ull /* chips do not come and go */
#define LS_TOPOLOGY_SIDE_MAX 1024u /* the longest side there is has 32 */
#define LS_KEYVALUE_LABEL_MAX_BYTES 512 /* a label's value has 63 at most */
/* environment of a job, with all services of a cluster */
#define LS_ENVIRON_MAX_BYTES 262144
#define LS_LABELS_FILE_MAX_BYTES 65536
/* values of fields, all sources together */
#define LS_IDENTITY_OFFERS_MAX 256
/* endpoints of 2,304 hosts, 100 bytes each */
#define LS_METADATA_BODY_MAX_BYTES 262144
/* a question; it is answered in the same machine */
#define LS_METADATA_DEADLINE_NS 1000000000ull
#define LS_METADATA_ROUND_NS 600000000000ull /* all is asked again */
#define LS_METADATA_RETRY_MIN_NS 2000000000ull
/* rest between two looks at all processes */
#define LS_OWNER_PASS_NS 60000000000ull
/* rings wait so long for the metadata server; they hold minutes */
#define LS_PLACE_SETTLE_NS 3000000000ull

/* --- agent: libtpu's metrics ---------------------------------------------- */
/* an answer; the largest seen, 40 histograms, is below 64 KiB */
#define LS_GRPC_MESSAGE_MAX_BYTES 262144u
#define LS_GRPC_REQUEST_MAX_BYTES 256u /* a metric's name */
#define LS_GRPC_HEADERS_MAX_BYTES 8192u /* of one answer, names and values */
#define LS_GRPC_TEXT_MAX_BYTES 128 /* of a status, for the log */
#define LS_GRPC_CALLS_MAX 8 /* under way at once on a connection */
/* of a call and of connecting: the source's readers use 1 s, too */
#define LS_GRPC_DEADLINE_NS 1000000000ull
/* before connecting again: never faster than 1 s */
#define LS_GRPC_HOLD_MIN_NS 1000000000ull
/* a job that starts is seen within 10 s */
#define LS_GRPC_HOLD_MAX_NS 10000000000ull
/* calls in a row without an answer end a connection */
#define LS_GRPC_TIMEOUTS_MAX 3
/* waiting for a peer that does not read: it is closed */
#define LS_GRPC_UNSENT_MAX_BYTES 65536u
#define LS_TPU_PORTS_MAX 8 /* a process a chip, 8 chips a host */
/* servers in other network namespaces: a pod a chip */
#define LS_NETNS_PORTS_MAX 8
/* network namespaces of a node: GKE allows 110 pods a node, TPU nodes run 20 */
#define LS_NETNS_MAX 128
#define LS_NETNS_PIDS_MAX 16384u
#define LS_NETNS_NEW_MAX 512u /* new processes a look: 2 ms */
#define LS_NETNS_ADDRESSES_MAX 16u /* of a namespace */
/* of a file below /proc/PID/net: 400 listeners, or 500 routes */
#define LS_NETNS_TEXT_MAX_BYTES 65536u
#define LS_NETNS_LOOK_NS 5000000000ull
#define LS_NETNS_FIRST_LOOKS 16u /* at one reading, at the start: 40 ms */
/* rest after a look, in times of its CPU time: at most .05 % of a core */
#define LS_NETNS_PACE 2000u
/* after its newest process a namespace is looked at whenever its sockets change */
#define LS_NETNS_YOUNG_NS 300000000000ull
/* and later, or where the count of sockets hides a change, so seldom */
#define LS_NETNS_OLD_NS 300000000000ull
#define LS_TPU_METRICS_MAX 64u /* names a port lists; 44 are known */
/* values one answer holds: collectives by kind and size */
#define LS_TPU_POINTS_MAX 256u
#define LS_TPU_LABELS_MAX 6u
#define LS_TPU_LABEL_KEY_MAX_BYTES 32
#define LS_TPU_LABEL_VALUE_MAX_BYTES 48
/* 8 chips of 2 TensorCores and 4 SparseCores are 48 */
#define LS_TPU_CORES_MAX 64u
/* kinds of fields in a status that are not known here */
#define LS_TPU_UNKNOWN_FIELDS_MAX 8u
#define LS_TPU_WHERE_MAX_BYTES 96 /* an HLO location, cut */
/* 64 cores of 3 KiB, with details of their operations */
#define LS_STALL_FILE_MAX_BYTES 262144u
#define LS_STALL_ENTRIES_MAX 4096u /* of --stall-dir, a look */
#define LS_STALL_LOOK_NS 5000000000ull
#define LS_STALL_CORES_SHOWN 8u
#define LS_STALL_CORES_SENT 4u /* of a host, to the collector; and shown in a finding */
/* with a memory of the reading before: 2 KiB each */
#define LS_TPU_HISTOGRAMS_MAX 128u
/* so that buckets leave room to the other series */
#define LS_TPU_BUCKET_SERIES_MAX 256u
/* likewise of metrics that are not known here */
#define LS_TPU_UNKNOWN_SERIES_MAX 128u
/* status and queues; nothing is polled faster than 1 s */
#define LS_TPU_STATUS_NS 1000000000ull
/* gauges every 5 s: they are means over seconds */
#define LS_TPU_GAUGES_TICKS 5u
/* histograms every 10 s, as GKE's plugin does */
#define LS_TPU_HISTOGRAMS_TICKS 10u
/* the list of metrics, and those not found, once a minute */
#define LS_TPU_LIST_TICKS 60u
/* a series that is silent for 10 min leaves its group */
#define LS_TPU_FORGET_NS 600000000000ull
/* a core that stands still so long is looked at */
#define LS_TPU_STALL_NS 10000000000ull
/* looks kept: a window of a minute at one a second */
#define LS_TPU_LOOKS_MAX 64u
/* over which inferred steps are averaged */
#define LS_TPU_STEPS_WINDOW_NS 60000000000ull
/* launches without marks before they are told as steps: a ring may still come */
#define LS_STATUS_BEGIN_NS 10000000000ull
/* and so many launches: not one of initialisation alone */
#define LS_STATUS_BEGIN_STEPS 3u
/* without any status: the job is gone, not only slow to answer */
#define LS_STATUS_GONE_NS 60000000000ull
/* --once waits so long for asynchronous sources */
#define LS_TPU_ONCE_WAIT_NS 3000000000ull
/* facts of the source: 200 or more are refused */
#define LS_HISTOGRAM_BUCKETS_MAX 199u

/* --- collector ------------------------------------------------------------ */
#define LS_AGENTS_MAX 16384
#define LS_JOBS_MAX 1024
#define LS_WORKERS_MAX 65536
/* of one host: 16 hosts have to lie to take all places */
#define LS_HOST_WORKERS_MAX 4096
/* places of workers that had no record yet; the rest is left to those that bring one */
#define LS_WORKERS_UNHEARD_MAX (LS_WORKERS_MAX / 2)
/* an attempt further from the present one is begun by most of its workers' owners only */
#define LS_ATTEMPT_JUMP_MAX 1000
#define LS_SLICES_MAX 4096
#define LS_ROLES_MAX 4096
/* steps beyond are not judged: none counts so far, and doubles are exact */
#define LS_STEP_END (1ull << 52)
/* unclosed steps a job; older ones are closed short */
#define LS_OPEN_STEPS_MAX 8192
#define LS_OPEN_STEPS_MIN 256 /* even with LS_WORKERS_MAX workers */
/* unclosed steps x workers a job, 120 bytes each */
#define LS_OPEN_CELLS_MAX (1024u * 1024)
/* closed steps a job kept for page and heatmap */
#define LS_LIVE_STEPS 1024
/* (2 + workers) x steps in memory, of all jobs together: of the most agents the newest 100
 * steps, and what is open */
#define LS_CELLS_MAX (112u * LS_AGENTS_MAX)
/* named in a finding about a group; it counts all of them */
#define LS_FINDING_HOSTS_MAX 64
#define LS_FINDING_EPISODES_MAX 16u /* of a finding, the newest */
#define LS_FINDINGS_MAX 10000
/* of agents to the collector: twice LS_AGENTS_MAX, for those that come back */
#define LS_CONNECTIONS_MAX 32768
/* agents that may begin by one connection, which belongs to one */
#define LS_CONNECTION_AGENTS_MAX 64u
/* bytes of one agent's reports over time: 130 times what a host has, or 2,000 step
 * records a second */
#define LS_RATE_AGENT_BYTES_PER_S 65536u
/* saved at most: a whole spool */
#define LS_RATE_AGENT_BURST_NS \
	((int64_t)(LS_SPOOL_DEFAULT_BYTES / LS_RATE_AGENT_BYTES_PER_S) * 1000000000)
/* what a new agent begins with, since names are free: 256 KiB */
#define LS_RATE_AGENT_NEW_NS 4000000000ll
/* of it, what is not charged to its address: the first report of most hosts */
#define LS_RATE_AGENT_FREE_NS 250000000ll
/* of all agents of one address that have saved nothing (at most 16 MiB) */
#define LS_RATE_ADDRESS_BYTES_PER_S (32u * LS_RATE_AGENT_BYTES_PER_S)
#define LS_RATE_ADDRESS_BURST_NS 8000000000ll
/* buckets (addresses with the same hash share one) */
#define LS_RATE_ADDRESSES 4096u
/* an answer is delayed no longer: below LS_SESSION_STALE_NS and LS_ACK_TIMEOUT_NS. Who
 * would owe more keeps the items: an agent sends 394 KiB at most, which are 6 s, and waits
 * for its answer, so only others reach it */
#define LS_RATE_WAIT_MAX_NS 8000000000ll
#define LS_RATE_LOG_NS 60000000000ull
/* memory of all requests of agents that are not complete and larger than 2 KiB */
#define LS_FRAMES_MAX_BYTES (32u * 1024 * 1024)
#define LS_FRAME_TIME_NS 30000000000ull /* a request that began is there by then */
#define LS_WRITE_QUEUE_MAX 32768
#define LS_REP_CONTEXTS 4096 /* 10,000/s held for 0.25 s, and more */
#define LS_LISTEN_BACKLOG 4096
#define LS_COMMIT_INTERVAL_NS 100000000ull /* group commit */
#define LS_COMMIT_MAX_RECORDS 20000
/* a minute of the hot series of a host: 9 KiB at most */
#define LS_COUNTER_SAMPLES_KEPT 64
/* where they come rarely: a minute before an onset and one after it, and 16 at least */
#define LS_COUNTER_KEPT_US 120000000ll
/* ranks listed of one closing or standstill */
#define LS_CLOSE_MISSING_MAX 1024

/* zoomed at once: 16 x 1,024 series is 16 kB/s a beat */
#define LS_ZOOM_HOSTS_MAX 16u
/* hosts of the same role looked at beside a suspect */
#define LS_ZOOM_PEERS 2u
#define LS_ZOOM_TOTAL_NS 600000000000ull /* of one host, until it has rested */
#define LS_ZOOM_REST_NS 1800000000000ull
/* hosts whose use is remembered; the oldest make room */
#define LS_ZOOM_RESTING_MAX 256u
/* how often it is decided who is zoomed */
#define LS_ZOOM_TURN_US 1000000
#define LS_ZOOM_LIVE_US 10000000 /* values older than this are not live */
/* kept in memory; evicted ones are asked for again */
#define LS_DICTIONARIES_MAX 65536u
#define LS_DICTIONARIES_MAX_BYTES (128u * 1024 * 1024)
/* last_us of a host is brought up to date so often */
#define LS_HOST_STORED_US (3600ll * 1000000)

/* --- sessions and storage of the collector -------------------------------- */
/* rings whose records are numbered here */
#define LS_RING_MAP_MAX LS_WORKERS_MAX
/* of these, that never had a record and that no session holds */
#define LS_RINGS_UNHEARD_MAX 4096u
/* as LS_SESSION_GONE_NS: until another host's agent may speak of a ring */
#define LS_RING_SILENT_US 120000000ll
#define LS_SESSION_STALE_NS 10000000000ull /* ten beats: no longer live */
#define LS_SESSION_GONE_NS 120000000000ull
/* fingerprints of accepted items, to tell changed ones */
#define LS_SESSION_SEEN_ITEMS 32
/* exchanges of which the fastest is kept */
#define LS_CLOCK_WINDOW 16
/* kept ones that offset and drift are fitted to */
#define LS_CLOCK_WINDOWS 16
/* reports without stamps before times are guessed */
#define LS_CLOCK_HELLO_MAX 3
/* of data before our now: a clock is known to 1 s at worst */
#define LS_TIME_AHEAD_MAX_US 300000000ll
/* a spool keeps less, and files go after 30 days */
#define LS_TIME_BEHIND_MAX_US (40ll * 24 * 3600 * 1000000)
/* reports' memory kept for the next ones: those of a commit, twice */
#define LS_INTAKE_SPARE_MAX 2048u
#define LS_INTAKE_SPARE_BYTES 2048u /* of longer reports none is kept */
#define LS_PRESSURE_TURN_NS 1000000000ull /* a beat: how often load is judged */
/* of the room for what waits; the rest answers "retry later" */
#define LS_PRESSURE_HELD_SHARE 0.75
/* an ack is to take no longer, its commit alone least of all */
#define LS_PRESSURE_COMMIT_NS 250000000ull
/* of a core: beyond it, answers and pages queue up */
#define LS_PRESSURE_LOOP_RATIO 0.85
/* of that: below half, since beats twice as short double it */
#define LS_PRESSURE_CALM_RATIO 0.4
/* in a row: one slow sync or one burst is no reason */
#define LS_PRESSURE_TURNS 3u
/* beats of 4 s: below half of LS_SESSION_STALE_NS */
#define LS_PRESSURE_FACTOR_MAX 4u
/* the longest beat, and a second to see what it did */
#define LS_PRESSURE_RISE_NS 5000000000ull
#define LS_PRESSURE_CALM_NS 30000000000ull /* until beats become shorter */
/* if they were shortened too early again and again */
#define LS_PRESSURE_CALM_MAX_NS 480000000000ull
/* reports waiting for their commit */
#define LS_INGEST_HELD_MAX_BYTES (256u * 1024 * 1024)
/* places that reports leave to findings and closings */
#define LS_WRITE_RESERVE 4096
#define LS_WRITE_KEPT_MAX 20000 /* messages kept while the disk refuses */
#define LS_WRITE_DONE_MAX 1024 /* commits told but not yet heard */
/* between attempts while the disk refuses */
#define LS_WRITE_RETRY_NS 1000000000ull
/* only a reader at recovery holds a lock, briefly */
#define LS_DB_BUSY_MS 2000
/* at start, a file: the rest of a large one is not checked */
#define LS_DB_CHECK_NS 200000000ull
#define LS_WAL_CHECKPOINT_BYTES (8ll * 1024 * 1024)
/* a reader that makes a WAL grow further is interrupted */
#define LS_WAL_MAX_BYTES (64ull * 1024 * 1024)
/* from here on a checkpoint waits so long for readers, each time the WAL has grown by
 * LS_WAL_CHECKPOINT_BYTES */
#define LS_WAL_TURN_BYTES (32ll * 1024 * 1024)
#define LS_WAL_TURN_MS 100
#define LS_DAYS_MAX 4096 /* eleven years of day files */
/* after the end of a day: what comes late to its file is there */
#define LS_REPACK_WAIT_US (3600ll * 1000000)
/* even if its roll-ups are not whole */
#define LS_REPACK_FORCE_US (48ll * 3600 * 1000000)
/* after one that failed: a full disk, a reader in its WAL */
#define LS_REPACK_RETRY_NS 600000000000ull
/* between two checks of all days after reads that met damage */
#define LS_VERIFY_AGAIN_NS 3600000000000ull
/* between two looks for a day to repack */
#define LS_REPACK_LOOK_NS 60000000000ull
/* agents and rings silent for longer are new */
#define LS_LEDGER_KEEP_US (30ll * 24 * 3600 * 1000000)
/* not used for longer: asked for again */
#define LS_DICTIONARY_KEEP_US (2ll * 24 * 3600 * 1000000)
/* of one row; a commit beyond it makes several */
#define LS_JOURNAL_BODY_MAX_BYTES (64u * 1024 * 1024)
/* events, and records, of one unit or row: memory of a reader */
#define LS_UNIT_EVENTS_MAX 262144u
/* records of one row: a step of 10,000 hosts in one or two */
#define LS_STEP_ROWS_RECORDS_MAX 16384u
/* so many records take 96 MiB, such items before them less */
#define LS_SPAN_MAX_BYTES (512u * 1024 * 1024)
/* units made, and nobody asked yet what came of them */
#define LS_WRITE_PACKED_MAX 64
/* the longest a chunk lasts, repacked ones too, and slack */
#define LS_CHUNK_SPAN_US 660000000ll
/* rows of one read: a reader never pins the WAL */
#define LS_QUERY_WINDOW 4096
/* what is asked for most stays as it came */
#define LS_PACK_AGE_US 2000000
/* nothing the keeper does is due sooner */
#define LS_KEEPER_TURN_NS 1000000000ull
/* kinds of work: packing, roll-ups, repacking */
#define LS_KEEPER_TURNS_MAX 4
/* files one reader keeps open; a visit needs two */
#define LS_QUERY_DAYS_OPEN 4
/* a question that takes longer is cut off: below LS_HTTP_TIMEOUT_S */
#define LS_QUERY_NS 5000000000ull
/* buckets or values of a line: three hours of seconds */
#define LS_QUERY_POINTS_MAX 11000u
/* what a screen shows, when nobody says how many */
#define LS_QUERY_POINTS_DEFAULT 300u
/* series of one host that one name stands for */
#define LS_QUERY_LINES_MAX 256u
/* numbers of one answer: 5 MB of text; the rest is on further pages */
#define LS_QUERY_VALUES_MAX 262144u
/* memory of an answer's text that a reader keeps for the next one */
#define LS_ANSWER_KEPT_BYTES (1u << 20)
/* series x buckets of a job in memory, 32 bytes each: 10,000 hosts x 4 chips x 100 */
#define LS_QUERY_CELLS_MAX (4u * 1024 * 1024)
/* chunks of all hosts are read for so much, no more */
#define LS_QUERY_RAW_FLEET_US (10ll * 60 * 1000000)
/* of one body: a column of them is 0.1 ms to read */
#define LS_ROLLUP_ROWS_MAX 16384u
/* sums held: three minutes of 10,000 hosts x 120 series and some late ones */
#define LS_ROLLUP_MEMORY_MAX_BYTES (144u * 1024 * 1024)
/* open at once: now, and what spools send late */
#define LS_ROLLUP_MINUTES_MAX 64u
/* from a minute's begin until it is written: agents seal and send until then */
#define LS_ROLLUP_AFTER_US (180ll * 1000000)
/* a late minute stays open so long, so that a spool makes few rows */
#define LS_ROLLUP_LATE_US (60ll * 1000000)
/* later than their commit samples are not summed up */
#define LS_ROLLUP_AHEAD_US (600ll * 1000000)
#define LS_ROLLUP_PUT_OFF_MAX 4096 /* chunks waiting for their dictionary */
/* a second's worth of 10,000 hosts is 170 a group */
#define LS_ROLLER_CHUNKS_PER_TURN 2048
#define LS_ROLLUP_NAMES_MAX 262144u /* metrics and label sets of a file */
/* of an hour being made: 10,000 hosts take 10 ms each */
#define LS_ROLLER_METRICS_PER_TURN 16
#define LS_ROLLUP_NAME_DAYS 3 /* files whose names a reader keeps */
/* of hosts and label sets of a file; more is damage */
#define LS_ROLLUP_ID_MAX 4194304
/* step records fed back at start, the newest: about 8 us each with the counters beside them; 25 steps of
 * 3,000 workers */
#define LS_RESTORE_MAX_RECORDS 75000u
#define LS_EXPORT_PIECE_BYTES 65536
#define LS_EXPORT_PIECES 8 /* on their way from reader to loop */
#define LS_EXPORTS_MAX 16 /* waiting, in each lane of the reader */
/* threads for short questions: as many as there are cores */
#define LS_READER_SHORT 2

/* --- replay --------------------------------------------------------------- */
#define LS_REPLAY_LINE_MAX_BYTES 65536
#define LS_REPLAY_MAX_BYTES (4ull * 1024 * 1024 * 1024) /* of inflated input */
/* held in memory to be put in order: about 2 GiB */
#define LS_REPLAY_MAX_RECORDS 4000000u
#define LS_REPLAY_ERRORS_SHOWN 20u
#define LS_REPLAY_ROW_MAX_BYTES 1024 /* of a table; a row has about 40 */
#define LS_REPLAY_COLUMNS_MAX 64u

/* --- operation traces (lockstep whatif) ----------------------------------- */
/* 12 steps of 1,250 dp x 8 stages x 32 microbatches; 0.7 GiB */
#define LS_WHATIF_ROWS_MAX 8388608u
#define LS_WHATIF_LINE_MAX_BYTES 1024 /* a row has about 80 */
#define LS_WHATIF_COLUMNS_MAX 64 /* 8 are needed; profilers add some */
/* dp x stages: six times our largest cluster */
#define LS_WHATIF_WORKERS_MAX 65536
#define LS_WHATIF_STAGES_MAX 1024 /* the deepest pipelines have some tens */
#define LS_WHATIF_WORLD_MAX 16777216 /* ranks, tensor-parallel ones included */
#define LS_WHATIF_META_MAX_BYTES 65536
/* Unix seconds fit; a double still tells 0.1 ms */
#define LS_WHATIF_TIME_MAX_S 1e12
/* as LS_PHASE_MAX_NS: an operation of a month is a lie */
#define LS_WHATIF_DURATION_MAX_S 2592000.0
#define LS_WHATIF_TOP_MAX 100 /* workers replayed one by one */
/* replayed at once: what is held then stays in the cache */
#define LS_WHATIF_BLOCK_LANES 128u

/* --- web ------------------------------------------------------------------ */
#define LS_HTTP_HEADER_MAX_BYTES 16384
#define LS_HTTP_BODY_MAX_BYTES 16384 /* a note on a finding */
#define LS_HTTP_TIMEOUT_S 30
#define LS_HTTP_CONNECTIONS_MAX 1024
#define LS_TOKEN_NAME_MAX_BYTES 32
#define LS_TOKEN_BYTES 80 /* a token as text, and its end */
#define LS_TOKENS_MAX 1024 /* that may ask over HTTP */
/* requests with a wrong token that are answered 401, of all clients; more get 429 */
#define LS_TOKENS_WRONG_PER_S 10
#define LS_PAGE_DEFAULT 100
#define LS_PAGE_MAX 1000
#define LS_GRID_COLS_MAX 1200
#define LS_GRID_ROWS_MAX 256
#define LS_QUERY_PAIRS_MAX 16 /* parameters of one request */
#define LS_QUERY_NAME_MAX_BYTES 32
#define LS_QUERY_VALUE_MAX_BYTES 256 /* the longest name is 128 */
/* answers and exports that clients have still to read, all together */
#define LS_HTTP_UNREAD_MAX_BYTES (32u * 1024 * 1024)
/* an export waits for a client that has more to read */
#define LS_HTTP_EXPORT_BEHIND_MAX_BYTES (8u * 1024 * 1024)
/* lockstep_finding_info: labels stay bounded */
#define LS_METRICS_FINDINGS_MAX 50
#define LS_CLI_BODY_MAX_BYTES (256u * 1024 * 1024)
/* one chunk of a stream; the collector's have 64 KiB */
#define LS_CLI_CHUNK_MAX_BYTES (16u * 1024 * 1024)
/* a stream that brings less in --timeout has ended */
#define LS_CLI_PROGRESS_BYTES 256u

#endif
