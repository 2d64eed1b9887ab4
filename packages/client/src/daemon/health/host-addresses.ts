import { networkInterfaces } from "node:os";
import { canonicalIP, type IPFamily } from "@turnout/core";

/** Read this host's addresses of one family, canonical, as Node tells them on every system: those of links that are up. */
export function hostAddresses(family: IPFamily): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((ofLink = []) =>
    ofLink.flatMap(({ address }) => {
      const ip = canonicalIP(address);
      return ip?.family === family ? [ip.text] : [];
    }),
  );
}
