// Asks the kernel to make a flow of a protocol, and says what it answers.
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include "../programs/conntrack.h"

// The protocol is the packet's priority; its mark becomes 0, or the number of the error.
SEC("tc")
int try_protocol(struct __sk_buff *skb) {
  struct bpf_sock_tuple tuple = {.ipv4 = {.saddr = 1, .daddr = 2, .sport = 3, .dport = 4}};
  struct bpf_ct_opts___small opts = {.netns_id = BPF_F_CURRENT_NETNS, .l4proto = skb->priority};
  struct nf_conn___init *fresh = bpf_skb_ct_alloc(skb, &tuple, sizeof(tuple.ipv4), &opts, sizeof(opts));
  skb->mark = fresh ? 0 : -opts.error;
  struct nf_conn *flow = fresh ? bpf_ct_insert_entry(fresh) : NULL;
  if (flow)
    bpf_ct_release(flow);
  return TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
