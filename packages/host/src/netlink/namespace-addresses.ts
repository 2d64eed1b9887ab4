import { ProxyError } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { DumpChannel } from "./dump-channel.ts";
import { addressRequest, consistentDump, IFADDRMSG_LENGTH, parseAddress } from "./host-addresses.ts";
import { attribute, findAttribute, host32 } from "./message.ts";

// @source linux/rtnetlink.h, linux/if_addr.h
const RTM_GETADDR = 22;
const IFA_TARGET_NETNSID = 10;

/**
 * List the addresses of one family in another network namespace, which this one knows by a number: that of a pod, behind a pair of devices.
 *
 * Edges: undefined where the kernel doesn't tell: it is older than 4.20, the number is nobody's, or this process has no rights there.
 */
export async function listAddressesIn(
  open: () => DumpChannel,
  namespace: number,
  family: IPFamily,
): Promise<readonly string[] | undefined> {
  const channel = open();
  try {
    const request = Buffer.concat([addressRequest(family), attribute(IFA_TARGET_NETNSID, host32(namespace))]);
    let isNotified = true;
    const found = await consistentDump(channel, RTM_GETADDR, request, "addresses", (payload) => {
      // An older kernel reads over what it doesn't know, and lists this namespace.
      isNotified &&= findAttribute(payload, IFA_TARGET_NETNSID, IFADDRMSG_LENGTH) !== undefined;
      return parseAddress(payload, family)?.ip;
    });
    return isNotified ? found : undefined;
  } catch (error) {
    if (ProxyError.is(error)) return undefined;
    throw error;
  } finally {
    channel.close();
  }
}
