"""People who administer every organization of the deployment (docs/design/security.md 6).

`HEADGATE_ADMINS` names them by number or by login. A login is a name that may change hands, so it
stands for the account that signs in under it first: the audit log records its number, and from
then on the number alone counts. A start without the login ends that: a login that is named again
stands for the account that signs in under it next. While the setting is empty, those count whom the
set-up page has made administrators.
"""

from dataclasses import replace

from service.accounts import audit_log
from service.accounts.store import audit
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor

BY_LOGIN = "administrator.resolved"
ENDED = "administrator.ended"
BY_SETUP = "administrator.named"
"""Actions of the audit log; the subject is `HOST/LOGIN`, `id` in the data is the number."""


async def is_administrator(runtime: Runtime, host: str, person: Actor) -> bool:
    """Return whether a person who signed in at this host is one of them."""
    admins = runtime.options.admins
    if not person.id or person.id in admins:
        return bool(person.id)
    if not admins:
        made = await runtime.store.read(audit.of_deployment, BY_SETUP)
        return any(_host_of(row) == host and row.data["id"] == person.id for row in made)
    numbers = await _numbers(runtime)
    return person.id in {numbers.get(_subject(host, login)) for login in admins}


async def note_sign_in(runtime: Runtime, host: str, person: Actor) -> None:
    """Record the number of a person who signs in under a login that the setting names."""
    is_login = person.login.lower() in runtime.options.admins and not person.login.isdecimal()
    subject = _subject(host, person.login)
    if is_login and subject not in await _numbers(runtime):
        await _record(runtime, person, BY_LOGIN, subject, person.id)


async def end_unnamed(runtime: Runtime) -> None:
    """Record at a start which logins the setting does not name any more."""
    for subject, number in (await _numbers(runtime)).items():
        if subject.rpartition("/")[2] not in runtime.options.admins:
            await _record(runtime, SYSTEM, ENDED, subject, str(number))


async def add(runtime: Runtime, host: str, person: Actor, operator: Actor) -> None:
    """Make a person who has signed in an administrator, in the name of the operator."""
    await _record(runtime, operator, BY_SETUP, _subject(host, person.login), person.id)


async def _numbers(runtime: Runtime) -> dict[str, object]:
    """Return the number of each login that was resolved, by subject; the first one counts."""
    found: dict[str, object] = {}
    for row in await runtime.store.read(audit.of_deployment, BY_LOGIN, ENDED):
        if row.action == ENDED:
            found.pop(row.subject, None)
        else:
            found.setdefault(row.subject, row.data["id"])
    return found


async def _record(runtime: Runtime, by: Actor, action: str, subject: str, number: str) -> None:
    entry = audit_log.allowed(by, None, action, subject, runtime.clock.now())
    await runtime.store.run(audit.append, replace(entry, data={"id": number}))


def _subject(host: str, login: str) -> str:
    return f"{host}/{login.lower()}"


def _host_of(row: audit.AuditEntry) -> str:
    return row.subject.rpartition("/")[0]
