import { compileSelector, requireProtocol } from "./compile-expression.ts";
import type { RuleContext } from "./rule-context.ts";
import { readConstant } from "./constants.ts";
import { addressTypeOf, DATA_TYPES, describeTypes, isSameType } from "./data-types.ts";
import { Refusal } from "./refusal.ts";
import type { HookDemand, Statement, StepResult } from "./ruleset.ts";
import type { NatSyntax } from "./syntax.ts";
import type { Walk } from "./walk.ts";

const ACCEPT: StepResult = { verdict: "accept" };
const DEMANDS: Readonly<Record<NatSyntax["type"], HookDemand>> = {
  dnat: { type: "nat", hooks: ["prerouting", "output"] },
  redirect: { type: "nat", hooks: ["prerouting", "output"] },
  snat: { type: "nat", hooks: ["postrouting", "input"] },
  masquerade: { type: "nat", hooks: ["postrouting"] },
};

/** Understand an address translation. A translation that was set up ends the way through the nat chains of a hook. @throws {Refusal}. */
export function compileNat(statement: NatSyntax, context: RuleContext): Statement {
  const { type, family, flags } = statement;
  if (family !== "" && family !== context.table.family) {
    throw new Refusal(`conflicting protocols specified: ${context.table.family} vs. ${family}`, statement);
  }
  const address = statement.address === undefined ? undefined : compileAddress(statement.address, context);
  const port = statement.port === undefined ? undefined : readConstant(statement.port, [DATA_TYPES.inet_service]);
  const needsProtocol = port !== undefined || address?.hasPort === true;
  if (needsProtocol && context.protocols.length === 0) {
    throw new Refusal("transport protocol mapping is only valid after transport protocol match", statement.port ?? statement);
  }
  if (address?.protocol !== undefined) requireProtocol(context, address.protocol, statement);
  const body = {
    // nft prints the family where address and port come from a map.
    ...(address?.hasPort === true ? { family: context.table.family } : {}),
    ...(address === undefined ? {} : { addr: address.json }),
    ...(port === undefined ? {} : { port: port.json }),
    ...(flags.length === 0 ? {} : { flags: flags.length === 1 ? flags[0] : flags }),
  };
  const [protocol] = context.protocols;
  return {
    json: { [type]: Object.keys(body).length === 0 ? null : body },
    demand: DEMANDS[type],
    run(walk: Walk): StepResult {
      if (needsProtocol && walk.protocol !== protocol) return "break";
      const target = address?.read(walk);
      if (address !== undefined && target === undefined) return "break";
      const [ip, mappedPort] = target ?? [];
      const newPort = mappedPort ?? (port === undefined ? undefined : Number(port.value.split("-")[0]));
      walk.translate(type, ip, newPort);
      return ACCEPT;
    },
  };
}

interface NatAddress {
  readonly json: unknown;
  /** Of the map's data. */
  readonly protocol?: string;
  readonly hasPort: boolean;
  read(walk: Walk): readonly [string, number?] | undefined;
}

function compileAddress(expression: NonNullable<NatSyntax["address"]>, context: RuleContext): NatAddress {
  const type = addressTypeOf(context.table.family);
  if (expression.is === "constant" || expression.is === "range" || expression.is === "prefix") {
    const { value, json } = readConstant(expression, [type]);
    const first = value.split(/[-/]/)[0] ?? value;
    return { json, hasPort: false, read: () => [first] };
  }
  const selector = compileSelector(expression, context);
  const hasPort = isSameType(selector.types, [type, DATA_TYPES.inet_service]);
  if (!hasPort && !isSameType(selector.types, [type])) {
    throw new Refusal(`datatype mismatch: expected ${type.says}, expression has type ${describeTypes(selector.types)}`, expression);
  }
  // A map of a rule is the set it referred to last.
  const protocol = expression.is === "map" ? context.sets.at(-1)?.dataProtocol : undefined;
  return {
    json: selector.json,
    hasPort,
    ...(protocol === undefined ? {} : { protocol }),
    read(walk: Walk): readonly [string, number?] | undefined {
      const [ip, port] = selector.read(walk)?.split(" . ") ?? [];
      if (ip === undefined) return undefined;
      return port === undefined ? [ip] : [ip, Number(port)];
    },
  };
}
