// A tc program that asks conntrack for a packet's flow, by a kfunc, and reads a struct of the kernel where this kernel has it (CO-RE).
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

struct nf_conn {
  unsigned long status;
} __attribute__((preserve_access_index));

// The first 12 bytes, which every kernel since 6.1 takes.
struct bpf_ct_opts___small {
  __s32 netns_id;
  __s32 error;
  __u8 l4proto;
  __u8 dir;
  __u8 reserved[2];
};

extern struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *skb, struct bpf_sock_tuple *tuple, __u32 tuple_size,
                                         struct bpf_ct_opts___small *opts, __u32 opts_size) __ksym;
extern void bpf_ct_release(struct nf_conn *ct) __ksym;

// The mark says what was found: the flow's status bits, or 0xdead0000 and the error.
SEC("tc")
int on_flow(struct __sk_buff *skb) {
  void *end = (void *)(long)skb->data_end;
  struct ethhdr *eth = (void *)(long)skb->data;
  struct iphdr *ip = (void *)(eth + 1);
  struct udphdr *udp = (void *)(ip + 1);
  if ((void *)(udp + 1) > end)
    return TC_ACT_UNSPEC;
  struct bpf_sock_tuple tuple = {};
  tuple.ipv4.saddr = ip->saddr;
  tuple.ipv4.daddr = ip->daddr;
  tuple.ipv4.sport = udp->source;
  tuple.ipv4.dport = udp->dest;
  struct bpf_ct_opts___small opts = {.netns_id = -1, .l4proto = IPPROTO_UDP};
  struct nf_conn *ct = bpf_skb_ct_lookup(skb, &tuple, sizeof(tuple.ipv4), &opts, sizeof(opts));
  if (!ct) {
    skb->mark = 0xdead0000 | (__u16)-opts.error;
    return TC_ACT_OK;
  }
  skb->mark = ct->status;
  bpf_ct_release(ct);
  return TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
