"""The scheduling of a queue: `batchSizing: FIXED` and `ADAPTIVE` answer the same questions.

Theory of operation. The core (`planning/`, `culprits/`) says what is true of a queue and acts on
it; a policy says what is better. `policies.policy_of(config)` gives a queue its policy: a `Policy`
(`questions.py`), which is a table of six questions: what to start, who is tested alone, how long to
wait, whom to suspect, what to confirm, whom to retest. Answers read the draft and change nothing.
No question is about what may land: the core proves that by itself.

    policies       FIXED and ADAPTIVE: the only door, beside `questions` for types and `constants`
    constants      each fitted number with its unit and the benchmark that it came from
    questions      the questions, with the answers of FIXED
    adaptive       the answers of ADAPTIVE, taken from the parts:
      belief, suspecting         what is believed of an entry, and whether it is rejected
      outages                    how probable it is that CI itself fails
      batching                   who joins a batch
      screening                  who is tested apart from the line, and who need not be
      retesting_failed_groups    when a failed group leaves the line
      early_looks                tests alone beside the line, while no history foresees who fails
      confirming, hedging        witnesses, second looks and hedges, in slots that are free
      durations                  how long test runs take
      entries_on_all_targets     what starts around an entry that impacts every target

An example: a run of #7 fails. `planning/settling.py` asks `suspects(draft).leaves(run)`. FIXED
answers no: a search looks for the culprit. ADAPTIVE compares what waiting costs with what a restart
costs, and may answer yes; then the core takes #7 out of the line, and later `retests` names it.
"""
