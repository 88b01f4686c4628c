// Requests that follow something that changes quickly, such as the pointer.

export interface Follower<A> {
  /** Asks for this now, or as soon as the request before it has its reply. */
  follow(args: A): void;
  /** Lets go of everything, so that a late reply is not shown. */
  drop(): void;
}

/** At most one request is under way; of those that came meanwhile only the newest is sent. */
export function newest<A, R>(
  ask: (args: A) => Promise<R>, show: (reply: R, args: A) => void, fail: (error: Error) => void,
): Follower<A> {
  let next: { args: A } | null = null;
  let busy = false;
  let dropped = 0;

  async function run(args: A): Promise<void> {
    busy = true;
    const before = dropped;
    try {
      const reply = await ask(args);
      if (before === dropped) show(reply, args);
    } catch (error) {
      if (before === dropped) fail(error as Error);
    }
    busy = false;
    if (next) proceed();
  }

  function proceed(): void {
    const { args } = next!;
    next = null;
    void run(args);
  }

  return {
    follow(args) {
      next = { args };
      if (!busy) proceed();
    },
    drop() {
      next = null;
      dropped++;
    },
  };
}
