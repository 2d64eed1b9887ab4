import { addNodeOptions, ALLOWED_ADDRESS_FLAGS, collect, OPTION_HELP } from "@turnout/client/daemon";
import { FAMILIES, ProxyError, type IPFamily } from "@turnout/core";
import type { Command } from "commander";
import { BACKEND_HELP, ROOTLESS_BACKEND } from "./registry.ts";

/** Add the flags that say which addresses Services may have besides their cluster IPs, and for which clients. */
export function addAllowOptions(command: Command): Command {
  const { externalIPs, loadBalancerIPs, strictSourceRanges, strictExternalIPs } = ALLOWED_ADDRESS_FLAGS;
  return command
    .option(
      `--${externalIPs} <cidrs>`,
      "Services may have these addresses as externalIPs, others are left out: CIDRs with commas, or none (default: all)",
    )
    .option(`--${loadBalancerIPs} <cidrs>`, "the same for addresses in status.loadBalancer.ingress (default: all)")
    .option(
      `--${strictSourceRanges} [true|false]`,
      "where loadBalancerSourceRanges has ranges of one family only, leave load-balancer IPs of the other family out (default: false, all clients may use them)",
    )
    .option(
      `--${strictExternalIPs} [true|false]`,
      "leave externalIPs out that an endpoint of another namespace, a pod range or a Node has (default: false, most are only reported)",
    );
}

/** Add --source, --node-name and --config. */
export function addSourceOptions(command: Command): Command {
  return addAllowOptions(addNodeOptions(command))
    .option(
      "--source <source>",
      "where Services come from: kube, file:PATH (a YAML or JSON file, or a directory), or api:TARGET (a node-state server at unix:///PATH or tls://HOST:PORT)",
      "kube",
    )
    .option("--master <url>", "API server address, beats the kubeconfig's");
}

/** Add --backend and --backend-option. */
export function addBackendOptions(command: Command, fallback: string | undefined): Command {
  return command
    .option("--backend <backend>", BACKEND_HELP, fallback)
    .option("--backend-option <name=value>", OPTION_HELP, collect, [])
    .option(
      "--map <destination=address:port>",
      `${ROOTLESS_BACKEND}: answer a destination (10.96.0.20:80, or shop/cart:http) at an address of this host; repeatable`,
      collect,
      [],
    );
}

/** --family as a list. @throws {ProxyError} `invalid_object` for any other word. */
export function familiesOf(text: string): readonly IPFamily[] {
  if (text === "both") return FAMILIES;
  const family = FAMILIES.find((known) => known.toLowerCase() === text.toLowerCase() || known.slice(-1) === text);
  if (family === undefined)
    throw new ProxyError("invalid_object", `"${text}" is no family`, { object: "--family", hint: "use IPv4, IPv6 or both" });
  return [family];
}
