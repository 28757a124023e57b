"""Mutants that behave as the original does, by module and name, each with its reason.

An entry whose mutant cannot be made any more fails a test: its code is gone, and so is its reason.
"""

EQUIVALENT: dict[str, dict[str, str]] = {
    "service/accounts/access.py": {
        "look_up: record is None or not is_its_own -> not is_its_own": (
            "A token without a record matches no digest: the dummy has no secret."
        ),
    },
    "service/accounts/tokens.py": {
        "_organization_of: org or access.ensure_organization(session, draft.host, None, "
        "draft.org_slug) -> "
        "access.ensure_organization(session, draft.host, None, draft.org_slug)": (
            "The organization that was found is the one that would be ensured."
        ),
    },
    "service/mergequeue/operations/pull_requests.py": {
        "_take_late_targets: newest is not None and newest != each.targets -> "
        "newest is not None": "The same targets change nothing; it saves a turn.",
    },
    "service/mergequeue/operations/proving.py": {
        "_call_fault: True -> False": "Both have as many: another number of commits is a fault.",
        "_positions: True -> False": "The same, and the fault was looked for before.",
    },
    "service/mergequeue/engine/culprits/verdict.py": {
        "_explanation: one.check is not None and one.check.raw == STARTUP_FAILURE -> "
        "one.check.raw == STARTUP_FAILURE": "Only failures are explained, and each has its report.",
        "late_suites: jobs <= names[other] -> jobs < names[other]": (
            "A suite with all jobs of another has the required name, so it is not looked for."
        ),
    },
    "service/mergequeue/engine/state/readiness.py": {
        "unmet_now: entry.run or '' -> entry.run": "No run has the id None.",
        "_leave_if_due: again.run or '' -> again.run": "No run has the id None.",
        "_is_over: ends is not None and ends <= draft.now -> ends <= draft.now": (
            "Only entries with such a clock are asked about."
        ),
        "_leave_if_due: reason is None or leaving.is_landing(draft, entry) -> "
        "leaving.is_landing(draft, entry)": "Only entries that wait to leave are asked about.",
        "_clear_conflicts: entry.rank or 0 -> entry.rank": (
            "An entry that conflicts with one ahead keeps its place."
        ),
    },
    "service/mergequeue/engine/planning/landing.py": {
        "land: tip is None or not draft.places.verified or (not _is_free(draft)) -> "
        "tip is None or not _is_free(draft)": (
            "Without a pull request whose tests count there is no run to land; it saves a search."
        ),
        "_candidate: draft.entries[node.members[0].pr].verified_by or '' -> "
        "draft.entries[node.members[0].pr].verified_by": "Only passed nodes are asked about.",
    },
    "bot/github/landing.py": {
        "_merge_call: answer.status >= 300 -> answer.status > 300": (
            "An answer is a success, or one of the refusals, from 400 on."
        ),
        "Landing._evidence: False -> True": (
            "It counts only under a strict rule, and then it is read or the branch is gone."
        ),
    },
    "service/mergequeue/operations/landing.py": {
        "_attempt: branch or '' -> branch": (
            "Only an advance names the branch, and its run has one."
        ),
        "_facts_of: entry.verified_by or '' -> entry.verified_by": "No run has the id None.",
        "_mismatch: True -> False": "There is one answer for each step.",
        "_landed: above is not None and part[-1] is left[-1] -> above is not None": (
            "A move of the target that is told during a landing waits in the queue for its end."
        ),
    },
    "service/process/effects.py": {
        "perform: row.state is OutboxState.READY and row.attempts == 0 -> row.attempts == 0": (
            "What is unknown was sent before."
        ),
        "_explain_trouble: row.queue_id is None or row.lane in outbox.REPLACED -> "
        "row.lane in outbox.REPLACED": "A report to no queue is dropped.",
    },
    "service/process/workers/loops.py": {
        "Timers.run: pause_s > 0 -> pause_s >= 0": (
            "A wait of no length ends at once, and the timer is overdue then."
        ),
    },
    "service/process/deliveries.py": {
        "accept: stored is not None and (not stored.is_awaited) -> stored is not None": (
            "The worker wakes, and finds nothing that is due."
        ),
        "_claim: False -> True": "The worker looks once more, and finds nothing.",
        "_act: heard.signals or translator(heard.row.delivery) -> "
        "translator(heard.row.delivery)": "The same signals again; it saves the work.",
        "_is_silent: translator is not None and (not translator(delivery)) -> "
        "not translator(delivery)": "To call None is a mistake, after which it is stored as well.",
    },
    "service/process/workers/flow.py": {
        "Flow.__init__: True -> False": "The first look sets it before it is asked.",
        "Flow._look: len(claimed.rows) == free or "
        "self._runtime.wakeups.version(self._work.topic) != woken -> "
        "len(claimed.rows) == free": "The wait ends at once after such a wake-up.",
    },
    "service/evidence/revocations.py": {
        "doubts_of: earlier and _has_unexcused(session, later) -> "
        "_has_unexcused(session, later)": "Without an earlier one there is no pair.",
        "sent_of: upload.machine or '' -> upload.machine": "Both name no machine.",
    },
    "service/database/page_tokens.py": {
        "_payload: True -> False": "What it lets through is spelled otherwise, and refused below.",
    },
    "service/database/sqlite.py": {
        "_meaning_of: isinstance(origin, sqlite3.Error) and code is not None and "
        "(code & 255 in UNAVAILABLE) -> code is not None and code & 255 in UNAVAILABLE": (
            "Only errors of this driver have such a code."
        ),
    },
    "service/database/sqlite_file.py": {
        "prepare: sqlite3.sqlite_version_info < VERSION_MIN -> "
        "sqlite3.sqlite_version_info <= VERSION_MIN": "Three parts never equal two.",
    },
    "service/database/postgresql.py": {
        "_meaning_of: state is not None and state.startswith(UNAVAILABLE) -> "
        "state.startswith(UNAVAILABLE)": "What has no code is lost, which was asked before.",
    },
    "service/evidence/links.py": {
        **{
            "ask_again: run is None or head is None or queue is None -> "
            f"{rest}": "The transaction that finds a live run has the run and its queue."
            for rest in ("head is None or queue is None", "run is None or head is None")
        },
        "_note_late_failures: run is None or run.sha != upload.sha or (not _was_excused(session, "
        "repository, run, upload)) -> run.sha != upload.sha or not _was_excused(session, "
        "repository, run, upload)": "An upload is of the class QUEUE because its run was found.",
    },
    "service/database/database.py": {
        f"{function}: where.database or '' -> where.database": (
            "An address of SQLite without a path is refused before."
        )
        for function in ("_open_sqlite", "_is_behind", "back_up")
    },
    "service/database/instances.py": {
        "SELECT_LANDS: select(instances.c.heartbeat).join(effects, effects.c.claimed_by == "
        "instances.c.id).where(effects.c.is_open.is_(True), effects.c.queue_id == "
        "bindparam('of_queue'), effects.c.kind == outbox.LAND, effects.c.state == "
        "OutboxState.SENT.value) -> select(instances.c.heartbeat).join(effects, "
        "effects.c.claimed_by == instances.c.id).where(effects.c.queue_id == "
        "bindparam('of_queue'), effects.c.kind == outbox.LAND, effects.c.state == "
        "OutboxState.SENT.value)": "What is sent is open; an index needs both.",
    },
    "service/database/inbox.py": {
        "_due: select(lanes.c.id).where(IS_FREE_LANE, lanes.c.due_at <= _NOW) -> "
        "select(lanes.c.id).where(IS_FREE_LANE)": (
            "What is not due comes behind what is, and is put back; it saves reading it."
        ),
    },
    "service/database/outbox.py": {
        "_QUEUE_IS_LANDING: select(earlier.c.id).where(outbox.c.kind == LAND, "
        "earlier.c.kind == LAND, earlier.c.queue_id == outbox.c.queue_id, _IS_CONTROL, "
        "_EARLIER_OPEN) -> select(earlier.c.id).where(outbox.c.kind == LAND, earlier.c.kind"
        " == LAND, earlier.c.queue_id == outbox.c.queue_id, _EARLIER_OPEN)": (
            "Every landing is in one of these lanes."
        ),
        "_SPOT_IS_BUSY: select(earlier.c.id).where(earlier.c.supersede_key == "
        "outbox.c.supersede_key, _IS_REPLACED, _EARLIER_OPEN) -> "
        "select(earlier.c.id).where(earlier.c.supersede_key == outbox.c.supersede_key, "
        "_EARLIER_OPEN)": ("Only effects of these lanes have such a key."),
        "SUPERSEDE: update(outbox).where(outbox.c.supersede_key == bindparam('of_key'), "
        "_IS_OPEN, outbox.c.state == OutboxState.READY.value) -> "
        "update(outbox).where(outbox.c.supersede_key == bindparam('of_key'), outbox.c.state"
        " == OutboxState.READY.value)": ("What is ready is open; an index needs both."),
        "SELECT_WAITING: "
        "select(outbox.c.supersede_key).where(outbox.c.supersede_key.in_(_SPOTS), _IS_OPEN,"
        " outbox.c.state == OutboxState.READY.value) -> "
        "select(outbox.c.supersede_key).where(_IS_OPEN, outbox.c.state == "
        "OutboxState.READY.value)": ("It reads more keys than are asked about."),
        "SELECT_WAITING: "
        "select(outbox.c.supersede_key).where(outbox.c.supersede_key.in_(_SPOTS), _IS_OPEN,"
        " outbox.c.state == OutboxState.READY.value) -> "
        "select(outbox.c.supersede_key).where(outbox.c.supersede_key.in_(_SPOTS), "
        "outbox.c.state == OutboxState.READY.value)": (
            "What is ready is open; an index needs both."
        ),
        "SELECT_BEHIND: select(outbox.c.id).where(outbox.c.lane.in_(_LANES), _WAITS, "
        "~_MAY_GO) -> select(outbox.c.id).where(outbox.c.lane.in_(_LANES), ~_MAY_GO)": (
            "What is sent could go, and what has ended has none before it."
        ),
        "REOPEN: update(outbox).where(_ID, _IS_OPEN, _IS_MINE) -> update(outbox).where(_ID,"
        " _IS_MINE)": ("What is sent is open; an index needs both."),
        "REOPEN_SENT: update(outbox).where(_IS_OPEN, outbox.c.state == "
        "OutboxState.SENT.value, outbox.c.claimed_by.is_(None) | "
        "outbox.c.claimed_by.not_in(_LIVING)) -> update(outbox).where(outbox.c.state == "
        "OutboxState.SENT.value, outbox.c.claimed_by.is_(None) | "
        "outbox.c.claimed_by.not_in(_LIVING))": ("What is sent is open; an index needs both."),
        "REOPEN_UNOWNED: update(outbox).where(_IS_OPEN, outbox.c.state == "
        "OutboxState.SENT.value, outbox.c.lane.in_(_LANES), outbox.c.claimed_by == "
        "bindparam('by'), outbox.c.id.not_in(_OWNED)) -> "
        "update(outbox).where(outbox.c.state == OutboxState.SENT.value, "
        "outbox.c.lane.in_(_LANES), outbox.c.claimed_by == bindparam('by'), "
        "outbox.c.id.not_in(_OWNED))": ("What is sent is open; an index needs both."),
        "_without_yielding: each.yields and each.supersede_key -> each.supersede_key": (
            "It only asks more; what yields is looked at again below."
        ),
        "_without_yielding: each.yields and each.supersede_key -> each.yields": (
            "What yields has such a key."
        ),
    },
    "service/testhealth/operations/flake_costs.py": {
        "_spans_in: True -> False": "As many follow as there are.",
    },
    "service/testhealth/operations/ingest.py": {
        f"_look_after_owners: path and has_new -> {rest}": (
            "A look without a file, or without new tests, finds nothing to do; it saves that."
        )
        for rest in ("path", "has_new")
    },
    "service/testhealth/detector/series.py": {
        "in_order: each.position or 0 -> each.position": "Only places with a position are sorted.",
        "Track.ran: True -> False": "A track has a letter for each point.",
        "Track.times: True -> False": "A track has a letter for each point.",
        "_enough: score.streak_probability(failed, passed, length) <= PROBABILITY_MAX -> "
        "score.streak_probability(failed, passed, length) < PROBABILITY_MAX": (
            "No streak has exactly this probability."
        ),
        "_end: True -> False": "A track has a letter for each point.",
        "_end: silent_from is not None and moment.clock >= silent_from -> "
        "moment.clock >= silent_from": "The verdict that the search begins with failed.",
    },
    "service/testhealth/detector/spans.py": {
        "_Walk.__init__: settled and settled.since -> settled": (
            "Without an open span it is not read when one was renewed."
        ),
    },
    "service/testhealth/detector/health.py": {
        "_why_healthy: each.until or each.since -> each.until": "All of them have ended.",
    },
}
