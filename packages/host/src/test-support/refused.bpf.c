// A program that the verifier refuses: what a lookup gives is used before it is known to be there.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

struct {
  __uint(type, BPF_MAP_TYPE_HASH); // Linux 6.18 knows that an array's element at a constant index is there
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} marks SEC(".maps");

SEC("tc")
int fine(struct __sk_buff *skb) {
  return TC_ACT_OK;
}

SEC("tc")
int careless(struct __sk_buff *skb) {
  __u32 at = 0;
  __u32 *mark = bpf_map_lookup_elem(&marks, &at);
  skb->mark = *mark;
  return TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
