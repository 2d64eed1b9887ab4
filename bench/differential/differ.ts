import { setTimeout as sleep } from "node:timers/promises";
import type { RawObject } from "@turnout/core/testing";
import { Asker } from "./ask.ts";
import type { KeptFlows, Patience } from "./ask.ts";
import { answersExpected, explainFlows, explainHealth, explainPackets, isAffine, verdictFor } from "./compare.ts";
import type { Compared, Explanation } from "./compare.ts";
import type { Answers } from "./permitted.ts";
import { healthQuestions, questionsOf, questionText } from "./questions.ts";
import type { HealthQuestion, Question } from "./questions.ts";
import type { Stage } from "./stage.ts";
import type { World } from "./world.ts";

/** What was otherwise with Turnout than with kube-proxy. */
export interface Difference {
  readonly phase: number;
  /** What was asked, in words. */
  readonly about: string;
  readonly turnout: Answers;
  readonly kubeProxy: Answers;
  readonly explanation: Explanation;
  /** To ask that again: what was asked in this phase, and of flows that were opened in the one before. */
  readonly again: Again;
}

/** One thing of a kind. */
type Again = { readonly question: Question } | { readonly flow: Question } | { readonly health: HealthQuestion };

/** What is asked in each phase. */
export interface Asked {
  readonly questions: readonly (readonly Question[])[];
  /** Flows that are opened in a phase and looked at in the next one. */
  readonly flows: readonly (readonly Question[])[];
  readonly health: readonly HealthQuestion[];
}

/**
 * Where answers differ they are asked for again, each time with more patience: what then is the same was chance or a busy machine. The kernel hears a
 * refusal of a TCP connection over IPv6 only at the second SYN, after a second: what comes by while connect() holds the socket is no error for it.
 */
const PATIENCE: readonly Patience[] = [
  { certainty: 3, timeoutMs: 1_400 },
  { certainty: 8, timeoutMs: 2_000 },
  { certainty: 14, timeoutMs: 4_000 },
];
/** For a difference that was seen twice: while its world is made smaller. */
export const IMPATIENCE: readonly Patience[] = [{ certainty: 8, timeoutMs: 1_400 }];
/** In which forgotten flows must be gone: kube-proxy and Turnout forget them behind the sync. */
const SETTLE_MS = [100, 1_000, 15_000];
const QUESTIONS = 100;
const FLOWS = 12;
const FLOWS_EACH = 3;

/** Choose what is asked of a world. Pure. */
export function askedOf(compared: Compared, { phases }: World, seed: number): Asked {
  const questions = phases.map((objects, index) => questionsOf(objects, seed + index, QUESTIONS));
  const isForwarded = (question: Question, phase: number): boolean => verdictFor(compared, phases[phase] ?? [], question).is === "forward";
  const flows = questions.map((some, phase) => {
    const forwarded = some.filter((question) => isForwarded(question, phase));
    const byProtocol = (protocol: Question["protocol"]): readonly Question[] => forwarded.filter((one) => one.protocol === protocol);
    // Changes end UDP flows only.
    return [...byProtocol("TCP").slice(0, 3), ...byProtocol("UDP").slice(0, FLOWS - 3)];
  });
  return { questions, flows, health: healthQuestions(phases) };
}

/** Ask for one difference again, in the last phase of a world. Pure. */
export function askedAgain({ phases }: World, again: Again): Asked {
  const at = <T>(phase: number, one: T | undefined): readonly (readonly T[])[] =>
    phases.map((_, index) => (index === phase && one !== undefined ? [one] : []));
  const last = phases.length - 1;
  return {
    questions: at(last, "question" in again ? again.question : undefined),
    flows: at(last - 1, "flow" in again ? again.flow : undefined),
    health: "health" in again ? [again.health] : [],
  };
}

/** Both askers of a stage. */
type Askers = Readonly<Record<"turnout" | "kubeProxy", Asker>>;
type Ask<Q> = (side: keyof Askers, questions: readonly Q[], patience: Patience) => Promise<ReadonlyMap<Q, Answers>>;
type Differing<Q> = Pick<Difference, "turnout" | "kubeProxy" | "explanation"> & { readonly one: Q };
type Both<T> = Readonly<Record<keyof Askers, T>>;

/** Compares both proxies of a stage in one world after another. */
export class Differ {
  #patience = PATIENCE;
  readonly #stage: Stage;
  readonly #askers: Askers;
  readonly #compared: Compared;

  constructor(stage: Stage, compared: Compared) {
    this.#stage = stage;
    this.#askers = { turnout: new Asker(stage.turnout.cluster), kubeProxy: new Asker(stage.kubeProxy.cluster) };
    this.#compared = compared;
  }

  /** Connections so far. */
  get connections(): number {
    return this.#askers.turnout.connections + this.#askers.kubeProxy.connections;
  }

  /** Go through the phases of a world and compare; the explained differences are among what is returned. */
  async compare({ phases }: World, asked: Asked, patience: readonly Patience[] = PATIENCE): Promise<readonly Difference[]> {
    this.#patience = patience;
    await this.#stage.become([]);
    const found: Difference[] = [];
    let flows: Both<KeptFlows> | undefined;
    for (const [phase, objects] of phases.entries()) {
      await this.#stage.become(objects);
      if (flows !== undefined) {
        found.push(...(await this.#compareFlows(phase, phases[phase - 1] ?? [], objects, flows)));
        await this.#both((side) => flows?.[side].release() ?? Promise.resolve());
        flows = undefined;
      }
      found.push(...(await this.#comparePackets(phase, objects, asked.questions[phase] ?? [])));
      found.push(...(await this.#compareHealth(phase, objects, asked.health)));
      const kept = asked.flows[phase] ?? [];
      if (phase < phases.length - 1 && kept.length > 0) flows = await this.#both((side) => this.#askers[side].open(kept, FLOWS_EACH));
    }
    return found;
  }

  async #comparePackets(phase: number, objects: readonly RawObject[], questions: readonly Question[]): Promise<readonly Difference[]> {
    const oneByOne = new Set(questions.filter((question) => isAffine(this.#compared, objects, question)));
    const explain = (one: Question, answers: Both<Answers>): Explanation => explainPackets(this.#compared, objects, one, answers);
    const expected = (question: Question): number => answersExpected(this.#compared, objects, question);
    const ask: Ask<Question> = (side, some, patience) => this.#askers[side].ask(some, patience, { oneByOne, expected });
    return (await this.#differing(questions, ask, explain)).map(({ one, ...answers }) => ({
      phase,
      about: questionText(one),
      ...answers,
      again: { question: one },
    }));
  }

  async #compareHealth(phase: number, objects: readonly RawObject[], questions: readonly HealthQuestion[]): Promise<readonly Difference[]> {
    const ask: Ask<HealthQuestion> = async (side, some) => {
      const answers = await Promise.all(some.map(async (one) => [one, [await this.#askers[side].health(one)]] as const));
      return new Map<HealthQuestion, Answers>(answers);
    };
    return (await this.#differing(questions, ask, (question, answers) => explainHealth({ objects, question, ...answers }))).map(
      ({ one, ...answers }) => ({
        phase,
        about: `health check node port ${one.port} at ${one.address}`,
        ...answers,
        again: { health: one },
      }),
    );
  }

  async #compareFlows(
    phase: number,
    before: readonly RawObject[],
    after: readonly RawObject[],
    flows: Both<KeptFlows>,
  ): Promise<readonly Difference[]> {
    let found: readonly Difference[] = [];
    for (const settleMs of SETTLE_MS.slice(0, this.#patience.length)) {
      await sleep(settleMs);
      const { turnout, kubeProxy } = await this.#both((side) => flows[side].fates());
      found = [...turnout].flatMap(([question, fates]) =>
        [...fates].flatMap(([server, fate]): readonly Difference[] => {
          const other = kubeProxy.get(question)?.get(server);
          if (other === undefined || other.join() === fate.join()) return [];
          const explanation = explainFlows(this.#compared, { before, after }, { question, server }, { turnout: fate, kubeProxy: other });
          const about = `kept flow ${questionText(question)} at ${server}`;
          return [{ phase, about, turnout: fate, kubeProxy: other, explanation, again: { flow: question } }];
        }),
      );
      if (found.every(({ explanation }) => explanation !== undefined)) return found;
    }
    return found;
  }

  /** Ask both sides until they say the same, or differ in a permitted way, or patience ends. */
  async #differing<Q>(
    questions: readonly Q[],
    ask: Ask<Q>,
    explain: (one: Q, answers: Both<Answers>) => Explanation,
  ): Promise<readonly Differing<Q>[]> {
    const explained: Differing<Q>[] = [];
    let open: readonly Differing<Q>[] = questions.map((one) => ({ one, turnout: [], kubeProxy: [], explanation: undefined }));
    for (const patience of this.#patience) {
      if (open.length === 0) break;
      const some = open.map(({ one }) => one);
      const { turnout, kubeProxy } = await this.#both((side) => ask(side, some, patience));
      const differing = some
        .map((one) => ({ one, turnout: turnout.get(one) ?? [], kubeProxy: kubeProxy.get(one) ?? [] }))
        .filter((answers) => answers.turnout.join() !== answers.kubeProxy.join())
        .map((answers): Differing<Q> => ({ ...answers, explanation: explain(answers.one, answers) }));
      explained.push(...differing.filter(({ explanation }) => explanation !== undefined));
      open = differing.filter(({ explanation }) => explanation === undefined);
    }
    return [...explained, ...open];
  }

  async #both<T>(act: (side: keyof Askers) => Promise<T>): Promise<Both<T>> {
    const [turnout, kubeProxy] = await Promise.all([act("turnout"), act("kubeProxy")]);
    return { turnout, kubeProxy };
  }
}
