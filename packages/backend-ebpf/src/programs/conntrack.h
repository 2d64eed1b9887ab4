// A packet's flow in conntrack: the kernel's own NAT rewrites it from its first packet on, both ways, with its ICMP errors and fragments.
#pragma once
#include <bpf/bpf_core_read.h>
#include "packet.h"

// How long a flow is kept whose first packet never gets to conntrack, as when another program drops it between here and there; whichever gets there begins
// the time anew. That is microseconds, unless the packet's other fragments are still to come: if they are this late, the packet is lost.
#define FIRST_MS 5000

// The few fields of the kernel's own structs that are read; CO-RE finds them.
struct ip_ct_tcp {
  __u8 state;
} __attribute__((preserve_access_index));

union nf_conntrack_proto {
  struct ip_ct_tcp tcp;
} __attribute__((preserve_access_index));

struct nf_conn {
  unsigned long status;
  union nf_conntrack_proto proto;
} __attribute__((preserve_access_index));

// Not inserted yet. libbpf wants to see a struct.
struct nf_conn___init {
  struct nf_conn flow;
};

// @source linux/netfilter/nf_conntrack_tcp.h
enum tcp_conntrack {
  TCP_CONNTRACK_TIME_WAIT = 7,
  TCP_CONNTRACK_CLOSE = 8,
};

// @source linux/netfilter/nf_conntrack_common.h
#define IPS_DST_NAT (1 << 5)

// @source linux/netfilter/nf_nat.h
enum nf_nat_manip_type { NF_NAT_MANIP_SRC, NF_NAT_MANIP_DST };

union nf_inet_addr {
  __be32 words[4];
};

// The first 12 bytes, which every kernel since 6.1 takes.
struct bpf_ct_opts___small {
  __s32 netns_id;
  __s32 error;
  __u8 l4proto;
  __u8 dir;
  __u8 reserved[2];
};

extern struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *skb, struct bpf_sock_tuple *tuple, __u32 tuple_size, struct bpf_ct_opts___small *opts,
                                         __u32 opts_size) __ksym;
extern struct nf_conn___init *bpf_skb_ct_alloc(struct __sk_buff *skb, struct bpf_sock_tuple *tuple, __u32 tuple_size, struct bpf_ct_opts___small *opts,
                                               __u32 opts_size) __ksym;
extern int bpf_ct_set_nat_info(struct nf_conn___init *flow, union nf_inet_addr *address, int port, enum nf_nat_manip_type manip) __ksym;
extern void bpf_ct_set_timeout(struct nf_conn___init *flow, __u32 timeout_ms) __ksym;
extern struct nf_conn *bpf_ct_insert_entry(struct nf_conn___init *flow) __ksym;
extern int bpf_ct_change_timeout(struct nf_conn *flow, __u32 timeout_ms) __ksym;
extern void bpf_ct_release(struct nf_conn *flow) __ksym;

// Who gets what comes to an address: whoever got it before, a process of the host, or a Service.
enum taker { AS_BEFORE, HOST, SERVICE };

// A connection that has ended stays in conntrack for a while. If the client opens another one from the same port, the kernel would forget the first, and
// send the packet on as it is: so it is forgotten here. So is a flow of UDP that gets to a Service and should get to the host, and the other way round.
static __always_inline bool is_over(const struct packet *packet, const struct nf_conn *flow, enum taker taker) {
  if (packet->to.protocol == IPPROTO_UDP && taker != AS_BEFORE)
    return (flow->status & IPS_DST_NAT) ? taker == HOST : taker == SERVICE;
  __u8 state = packet->is_opening ? flow->proto.tcp.state : 0;
  return state == TCP_CONNTRACK_TIME_WAIT || state == TCP_CONNTRACK_CLOSE;
}

// Conntrack knows the packet's flow: whatever was decided of it holds.
static __always_inline bool is_tracked(struct __sk_buff *skb, const struct packet *packet, enum taker taker) {
  struct bpf_sock_tuple tuple = {};
  struct bpf_ct_opts___small opts = {.netns_id = BPF_F_CURRENT_NETNS, .l4proto = packet->to.protocol};
  struct nf_conn *flow = bpf_skb_ct_lookup(skb, &tuple, tuple_of(&packet->to, &packet->from, packet->source_port, &tuple), &opts, sizeof(opts));
  if (!flow)
    return false;
  bool is_kept = !is_over(packet, flow, taker) || bpf_ct_change_timeout(flow, 0) != 0;
  bpf_ct_release(flow);
  return is_kept;
}

static __always_inline union nf_inet_addr inet_address(const struct packet *packet, const struct address *address) {
  union nf_inet_addr inet = {};
  if (packet->is_ipv4)
    inet.words[0] = address->words[3];
  else
    __builtin_memcpy(&inet, address, sizeof(inet));
  return inet;
}

// Tell conntrack of a flow that goes to `chosen` and comes from `source` there. The source port is kept unless another flow has it already.
// False: this very flow, or one with the same ports, has come into being meanwhile.
static __always_inline bool track(struct __sk_buff *skb, const struct packet *packet, const struct endpoint *chosen, const struct address *source) {
  struct bpf_sock_tuple tuple = {};
  struct bpf_ct_opts___small opts = {.netns_id = BPF_F_CURRENT_NETNS, .l4proto = packet->to.protocol};
  struct nf_conn___init *fresh = bpf_skb_ct_alloc(skb, &tuple, tuple_of(&packet->to, &packet->from, packet->source_port, &tuple), &opts, sizeof(opts));
  if (!fresh)
    return false;
  union nf_inet_addr to = inet_address(packet, &chosen->address);
  union nf_inet_addr from = inet_address(packet, source);
  int refused = bpf_ct_set_nat_info(fresh, &to, bpf_ntohs(chosen->port), NF_NAT_MANIP_DST);
  refused |= bpf_ct_set_nat_info(fresh, &from, -1, NF_NAT_MANIP_SRC);
  bpf_ct_set_timeout(fresh, FIRST_MS);
  struct nf_conn *flow = bpf_ct_insert_entry(fresh);
  if (!flow)
    return false;
  // What is allocated can only be inserted, so a flow without its addresses ends at once.
  if (refused)
    bpf_ct_change_timeout(flow, 0);
  bpf_ct_release(flow);
  return !refused;
}
