// A program that calls a function which no kernel has.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

extern int turnout_no_such_kfunc(struct __sk_buff *skb) __ksym;

SEC("tc")
int hopeful(struct __sk_buff *skb) {
  return turnout_no_such_kfunc(skb);
}

char _license[] SEC("license") = "GPL";
