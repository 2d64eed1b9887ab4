import { hostPort } from "@turnout/core/backend";
import type { ObjectWords } from "@turnout/core/backend";
import { placeOf, rulesDiffer } from "@turnout/host/iptables/text";
import { DEVICE } from "./names.ts";
import { readKey } from "./objects.ts";
import type { IpvsObject } from "./objects.ts";

/** Call an object by words of ipvsadm, ipset, iptables and ip, and say how the chain that the kernel holds differs. Pure. */
export function describeObject(object: IpvsObject, held?: IpvsObject): ObjectWords {
  const { kind, key } = object;
  switch (kind) {
    case "service":
    case "server": {
      const { protocol, address, port, server } = readKey(key);
      const show = `ipvsadm -Ln -${protocol === "TCP" ? "t" : protocol === "UDP" ? "u" : "-sctp-service"} ${hostPort(address, port)}`;
      const service = `virtual server ${protocol} ${hostPort(address, port)}`;
      return {
        what: server === undefined ? service : `real server ${hostPort(server.ip, server.port)} (with a weight) of ${service}`,
        show,
      };
    }
    case "set":
      return { what: `ipset ${key}`, show: `ipset list -terse ${key}` };
    case "entry": {
      const [set = "", entry = ""] = key.split(" ");
      return { what: `entry ${entry} of ipset ${set}`, show: `ipset test ${set} ${entry}` };
    }
    case "address":
      return { what: `address ${key} on ${DEVICE}`, show: `ip address show dev ${DEVICE} to ${key}` };
    case "sysctl":
      return { what: `kernel parameter ${key}`, show: `sysctl ${key}` };
    case "timeout":
      return { what: `timeout ${key} of IPVS`, show: "ipvsadm -L --timeout" };
    default: {
      const { table, chain } = placeOf(object);
      const where = `chain ${chain} of the iptables table ${table}`;
      const words = { what: `${kind === "jumps" ? "jumps in" : "rules of"} ${where}`, show: `iptables -t ${table} -S ${chain}` };
      if ((object.kind !== "chain" && object.kind !== "shared") || held?.kind !== object.kind) return words;
      return { ...words, differs: rulesDiffer(where, object, held) };
    }
  }
}
