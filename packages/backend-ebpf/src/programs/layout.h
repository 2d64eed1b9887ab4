// What lies in the maps, for both halves (docs/backends/ebpf.md). layout.ts says the same in TypeScript; its test compares them.
// Addresses and ports are in network order, IPv4 as ::ffff:a.b.c.d; numbers are in the machine's order. What is called zero is always 0.
#pragma once
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct address {
  __be32 words[4];
};

// What a client asks for. A node port has the family's unspecified address, ::ffff:0.0.0.0 or ::, whichever address of the node is asked.
struct destination {
  struct address address;
  __be16 port;
  __u8 protocol;
  __u8 zero;
};

enum verdict {
  PASS,   // as if there were no element
  SERVE,  // one of the list's endpoints
  REJECT,
  DROP,
};

// The table of nft refuses packets with this mark (nft-table.ts), before anybody else looks at it.
#define REFUSED_MARK 0x7475726e

// What becomes of clients of one origin.
struct choice {
  __u64 list;
  __u32 count; // endpoints in the list; at least 1 with SERVE
  __u8 verdict;
  __u8 masquerade; // for packets alone: at a socket the kernel chooses the source address after the endpoint
  __u16 zero;
};

struct service {
  __u64 row;
  __u64 tenant;           // its namespace: clients are remembered by namespace
  __u64 ranges;           // clients with other source addresses are dropped; 0: none are
  __u32 affinity_seconds; // 0: none
  __u32 flags;
  struct choice pod;
  struct choice host;
  struct choice outside; // packets alone
  __u32 affinity_sets;   // how many sets of places clients of its namespace have; at least 1 with affinity
  __u32 zero;
};
// Sockets of pods, and of the host, leave the service to packets: it opted out, or their source address may be outside its ranges.
#define PODS_PASS 1
#define HOST_PASS 2
// It is a cluster IP. On an address with LISTENERS a process of the host that listens comes first.
#define CLUSTER_IP 4

// A list is written once and never changed; its endpoints are sorted by their bytes.
struct place {
  __u64 list;
  __u32 index; // from 0
  __u32 zero;
};

struct endpoint {
  struct address address;
  __be16 port;
  __u16 zero;
};

// Addresses with a common beginning. `bits` counts those of `ranges`, too.
struct source_range {
  __u32 bits;
  __u32 ranges[2]; // as in struct service
  struct address address;
};

struct pod_range {
  __u32 bits;
  struct address address;
};

// A client: a network namespace, as ::cookie, or an address.
struct client {
  __u64 row;
  struct address address;
};

// Where clients of one tenant are remembered. A client has the places of one set; a tenant has so many sets, and so takes nothing from others.
#define PLACES_OF_SET 8
struct client_place {
  __u64 tenant;
  __u32 number; // the set's number times PLACES_OF_SET, and the place in it
  __u32 zero;
};

struct kept {
  struct client client;
  struct endpoint endpoint;
  __u32 zero;
  __u64 last_ns; // bpf_ktime_get_ns of its newest connection
};

// What a socket talks to, or asked for.
struct peer {
  __u64 socket; // its cookie
  struct endpoint endpoint;
  __u32 is_sender; // in chosen_udp: 1, the endpoint is what the socket hears from, and not what it asked for
};

struct counters {
  __u64 connections; // also flows of UDP packets
  __u64 datagrams;   // of sockets that are not connected
  __u64 rejects;     // no endpoint
  __u64 drops;       // no endpoint of this node where the policy is Local
  __u64 outside;     // dropped, from outside the source ranges
};

struct settings {
  __u64 host_namespace; // cookie of the network namespace that is the node's
};

// Sizes are those without options; options.ts has the names.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 262144);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct destination);
  __type(value, struct service);
} services SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 2097152);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct place);
  __type(value, struct endpoint);
} endpoints SEC(".maps");

// The node's own addresses, with flags.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct address);
  __type(value, __u32);
} node_addresses SEC(".maps");
#define OWN 1
#define NODE_PORTS 2 // node ports answer here
#define LISTENERS 4  // no proxy put it on its device, so a process of the host may listen here for a cluster IP, as a DNS cache does

// A family's unspecified address -> the node's primary address.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 2);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct address);
  __type(value, struct address);
} primaries SEC(".maps");

// Source ranges, named by their content as lists are.
struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __uint(max_entries, 262144);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct source_range);
  __type(value, __u32); // 1
} source_ranges SEC(".maps");

// Where pods' source addresses are, if detect-local tells pods by address.
struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __uint(max_entries, 64);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct pod_range);
  __type(value, __u32); // 1
} pod_ranges SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 131072);
  __type(key, struct client_place);
  __type(value, struct kept);
} affinity SEC(".maps");

// What a socket of TCP asked for, by what it got.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 131072);
  __type(key, struct peer);
  __type(value, struct endpoint);
} asked_tcp SEC(".maps");

// The same of UDP that is connected, which many short connections of TCP must not push out: by this sockets are found whose endpoint goes.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 131072);
  __type(key, struct peer);
  __type(value, struct endpoint);
} asked_udp SEC(".maps");

// Of a socket of UDP that isn't connected what it got, by what it asked for, and the other way round. Port 0: its program answers a client there, and asks no service.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 131072);
  __type(key, struct peer);
  __type(value, struct endpoint);
} chosen_udp SEC(".maps");

// By row. User space makes and deletes the elements.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 262144);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, __u64);
  __type(value, struct counters);
} counters SEC(".maps");

// Network namespaces whose sockets are left alone, by cookie.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, __u64);
  __type(value, __u32); // 1
} opted_out SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct settings);
} settings SEC(".maps");
