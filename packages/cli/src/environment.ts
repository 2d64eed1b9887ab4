import type { ProgramEnvironment } from "@turnout/client/daemon";

/** What the command touches besides its arguments; tests pass their own. */
export interface Environment extends ProgramEnvironment {
  /** Standard output is a terminal. */
  readonly isOutputTerminal: boolean;
  /** Versions of the packages that the command depends on, by name. */
  readonly dependencies: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Where relative backend paths and packages are looked for. */
  readonly workingDirectory: string;
}
