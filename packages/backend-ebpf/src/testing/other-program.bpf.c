// Programs of somebody else, at the same hooks as ours: they let everything pass.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

SEC("cgroup/connect4")
int somebody_conn4(struct bpf_sock_addr *ctx) {
  return 1;
}

SEC("tc")
int somebody_in(struct __sk_buff *skb) {
  return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
