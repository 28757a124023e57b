"""Organizations, repositories and API tokens.

Names match in any case. An account or repository is what its provider's id says; a name
belongs to whoever was seen with it last.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from service.accounts.store.tables_access import ApiTokenRow, RepositoryAliasRow
from service.accounts.tenants import Organization, RepositoryRecord, TokenRecord
from service.database.codec import JsonCodec, RowCodec
from service.database.tables_base import METADATA, MOVES_WITH_REPOSITORY
from service.database.tables_tenants import OrganizationRow, RepositoryRow
from service.database.types import Utc
from service.errors import NotFound
from service.provider.values import (
    Repository,
)
from service.vocabulary import MergeMethod, RepoRef

TOUCH_EVERY = timedelta(minutes=1)
"""A token's last use is written at most this often."""

METHODS: JsonCodec[frozenset[MergeMethod]] = JsonCodec(frozenset[MergeMethod])
SCOPE: JsonCodec[frozenset[int]] = JsonCodec(frozenset[int])

organizations = OrganizationRow.__table__
repositories = RepositoryRow.__table__
aliases = RepositoryAliasRow.__table__
tokens = ApiTokenRow.__table__

TOKEN = RowCodec(TokenRecord, tokens, elsewhere={"org_slug", "host"})

_FOUND = tuple[object, ...]

SELECT_TOKEN = select(
    *TOKEN.columns, organizations.c.slug.label("org_slug"), organizations.c.host.label("host")
).join(organizations, organizations.c.id == tokens.c.org_id)
SELECT_TOKEN_BY_ID = SELECT_TOKEN.where(tokens.c.id == bindparam("of_id"))

_LIVE = (
    (tokens.c.org_id == bindparam("of_org"))
    & tokens.c.revoked_at.is_(None)
    & or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > bindparam("now", type_=Utc))
)


def _named(table: FromClause) -> tuple[ColumnElement[bool], ...]:
    return (
        table.c.host == bindparam("of_host"),
        table.c.owner_key == bindparam("of_owner"),
        table.c.name_key == bindparam("of_name"),
    )


SELECT_BY_ID = select(repositories).where(repositories.c.id == bindparam("of_id"))
SELECT_BY_NAME = select(repositories).where(*_named(repositories))
SELECT_BY_FORMER_NAME = (
    select(repositories)
    .join(aliases, aliases.c.repository_id == repositories.c.id)
    .where(*_named(aliases))
)
SELECT_THIS = select(repositories).where(
    repositories.c.host == bindparam("of_host"),
    repositories.c.provider_id == bindparam("of_id"),
)
TAKE_NAME = (
    update(repositories)
    .where(
        *_named(repositories),
        (repositories.c.host != bindparam("not_host"))
        | (repositories.c.provider_id != bindparam("not_id")),
    )
    .values(owner_key=None, name_key=None)
)
FORGET_ALIAS = delete(aliases).where(*_named(aliases))
# NO KEY UPDATE: rows that only refer to the organization may be written meanwhile.
LOCK_ORGANIZATION = (
    select(organizations.c.id)
    .where(organizations.c.id == bindparam("of_org"))
    .with_for_update(key_share=True)
)
# NO KEY UPDATE: see LOCK_ORGANIZATION.
LOCK_LIMITS = (
    select(tokens.c.open_entries, tokens.c.ci_minutes)
    .where(tokens.c.id == bindparam("of_id"))
    .with_for_update(key_share=True)
)
SELECT_LIVE_TOKENS = SELECT_TOKEN.where(_LIVE).order_by(tokens.c.created_at, tokens.c.id)
COUNT_LIVE_TOKENS = select(func.count()).select_from(tokens).where(_LIVE)


def ensure_organization(
    session: Connection, host: str, provider_id: str | None, slug: str
) -> Organization:
    """The organization, made if need be.

    Found by the provider's id; an organization known by its slug alone is bound to the first
    id seen with that slug. A slug that another account had before is taken from it.
    """
    known = (
        None
        if provider_id is None
        else _organization(
            session, organizations.c.host == host, organizations.c.provider_id == provider_id
        )
    )
    if known is not None and known.slug == slug:
        return known
    named = organization_by_slug(session, host, slug)
    if known is None and named is not None and provider_id in (None, named.provider_id):
        return named
    if known is None and named is not None and named.provider_id is None:
        _change_organization(session, named.id, provider_id=provider_id, slug=slug)
        return Organization(named.id, host, provider_id, slug)
    if named is not None and (known is None or named.id != known.id):
        _change_organization(session, named.id, slug_key=None)
    if known is not None:
        _change_organization(session, known.id, slug=slug, slug_key=slug.lower())
        return Organization(known.id, host, provider_id, slug)
    made = session.execute(
        upsert(organizations).on_conflict_do_nothing().returning(organizations.c.id),
        {"host": host, "provider_id": provider_id, "slug": slug, "slug_key": slug.lower()},
    ).scalar_one_or_none()
    if made is None:
        # Another process made it since it was looked for here; it has committed by now.
        return ensure_organization(session, host, provider_id, slug)
    return Organization(made, host, provider_id, slug)


def lock_organization(session: Connection, org_id: int) -> None:
    """Let nobody else count what the organization has until the commit.

    Elsewhere than on SQLite, which has one writer, two that count at once would both find room.
    """
    session.execute(LOCK_ORGANIZATION, {"of_org": org_id})


def lock_limits(session: Connection, token_id: str) -> tuple[int, int]:
    """Return how many open entries and CI minutes a token may have, each 0 without a limit.

    Until the commit nobody else learns them, so that two requests cannot both find room.
    """
    row = session.execute(LOCK_LIMITS, {"of_id": token_id}).first()
    return (0, 0) if row is None else (row.open_entries, row.ci_minutes)


def organization_by_slug(session: Connection, host: str | None, slug: str) -> Organization | None:
    """The organization that has this slug now; without a host the oldest of that name."""
    where = [organizations.c.slug_key == slug.lower()]
    if host is not None:
        where.append(organizations.c.host == host)
    return _organization(session, *where)


def organizations_by_name(session: Connection, limit: int) -> tuple[Organization, ...]:
    """Organizations that have a name now, by name."""
    named = select(organizations).where(organizations.c.slug_key.is_not(None))
    found = session.execute(named.order_by(organizations.c.slug_key).limit(limit))
    return tuple(Organization(row.id, row.host, row.provider_id, row.slug) for row in found)


def organization(session: Connection, org_id: int) -> Organization:
    """The organization with our id, which must be one."""
    row = session.execute(select(organizations).where(organizations.c.id == org_id)).one()
    return Organization(row.id, row.host, row.provider_id, row.slug)


def _organization(session: Connection, *where: ColumnElement[bool]) -> Organization | None:
    statement = select(organizations).where(*where).order_by(organizations.c.id).limit(1)
    row = session.execute(statement).first()
    return None if row is None else Organization(row.id, row.host, row.provider_id, row.slug)


def _change_organization(session: Connection, org_id: int, **values: str | None) -> None:
    session.execute(update(organizations).where(organizations.c.id == org_id).values(**values))


def upsert_repository(session: Connection, org_id: int, seen: Repository) -> RepositoryRecord:
    """Store a repository as just read; available again unless archived.

    A former name stays as an alias, until another repository has it. Its queues go with it to
    the organization that owns it now.
    """
    owner_key, name_key = seen.ref.owner.lower(), seen.ref.name.lower()
    name = _name_of(seen.ref)
    session.execute(TAKE_NAME, {**name, "not_host": seen.id.host, "not_id": seen.id.id})
    session.execute(FORGET_ALIAS, name)
    values: dict[str, object] = {
        "org_id": org_id,
        "owner": seen.ref.owner,
        "name": seen.ref.name,
        "owner_key": owner_key,
        "name_key": name_key,
        "default_branch": seen.default_branch,
        "merge_methods": METHODS.encode(seen.merge_methods),
        "archived": seen.archived,
        "available": not seen.archived,
        "url": seen.url,
    }
    known = session.execute(SELECT_THIS, {"of_host": seen.id.host, "of_id": seen.id.id}).first()
    if known is None:
        made = session.execute(
            insert(repositories).returning(*repositories.c),
            {"host": seen.id.host, "provider_id": seen.id.id} | values,
        )
        return _repository(made.one())
    if known.owner_key is not None and (known.owner_key, known.name_key) != (owner_key, name_key):
        _keep_alias(session, known, org_id)
    if known.org_id != org_id:
        _move_rows(session, known.id, org_id)
    changed = session.execute(
        update(repositories)
        .where(repositories.c.id == known.id)
        .values(**values)
        .returning(*repositories.c)
    )
    return _repository(changed.one())


def _move_rows(session: Connection, repository_id: int, org_id: int) -> None:
    for table in METADATA.sorted_tables:
        if MOVES_WITH_REPOSITORY in table.info:
            moved = update(table).where(table.c.repository_id == repository_id)
            session.execute(moved.values(org_id=org_id))


def _keep_alias(session: Connection, known: Row[*_FOUND], org_id: int) -> None:
    former = {"host": known.host, "owner_key": known.owner_key, "name_key": known.name_key}
    statement = upsert(aliases).values(**former, org_id=org_id, repository_id=known.id)
    session.execute(
        statement.on_conflict_do_update(
            index_elements=list(former),
            set_={"org_id": known.org_id, "repository_id": known.id},
        )
    )


def repository_by_ref(
    session: Connection, org_id: int | None, ref: RepoRef
) -> RepositoryRecord | None:
    """The repository that has this name, or had it last; None when another organization's."""
    asked = _name_of(ref)
    found = session.execute(SELECT_BY_NAME, asked).first()
    if found is None:
        found = session.execute(SELECT_BY_FORMER_NAME, asked).first()
    if found is None or org_id not in (None, found.org_id):
        return None
    return _repository(found)


def _name_of(ref: RepoRef) -> dict[str, str]:
    return {"of_host": ref.host, "of_owner": ref.owner.lower(), "of_name": ref.name.lower()}


def repository_by_provider_id(
    session: Connection, host: str, provider_id: str
) -> RepositoryRecord | None:
    """The repository with the provider's own id."""
    return _first(session.execute(SELECT_THIS, {"of_host": host, "of_id": provider_id}).all())


def repository(session: Connection, repository_id: int) -> RepositoryRecord:
    """The repository with our id. Raises NotFound(repository_not_found)."""
    found = _first(session.execute(SELECT_BY_ID, {"of_id": repository_id}).all())
    if found is None:
        raise NotFound("This repository does not exist.", code="repository_not_found")
    return found


def repositories_of_owner(
    session: Connection, host: str, owner_id: str
) -> tuple[RepositoryRecord, ...]:
    """The repositories of one account at a provider, by its id there."""
    owner = _organization(
        session, organizations.c.host == host, organizations.c.provider_id == owner_id
    )
    return () if owner is None else repositories_of(session, owner.id)


def repositories_of(session: Connection, org_id: int | None) -> tuple[RepositoryRecord, ...]:
    """An organization's repositories, or all, by id."""
    statement = select(repositories).order_by(repositories.c.id)
    if org_id is not None:
        statement = statement.where(repositories.c.org_id == org_id)
    return tuple(_repository(row) for row in session.execute(statement))


def set_repository_available(
    session: Connection, repository_id: int, available: bool, archived: bool | None = None
) -> None:
    """Return whether the provider lets us work on it; `archived` None leaves that as it is."""
    values = {"available": available}
    if archived is not None:
        values["archived"] = archived
    session.execute(update(repositories).where(repositories.c.id == repository_id).values(**values))


def _first(rows: Iterable[Row[*_FOUND]]) -> RepositoryRecord | None:
    return next((_repository(row) for row in rows), None)


def _repository(row: Row[*_FOUND]) -> RepositoryRecord:
    return RepositoryRecord(
        id=row.id,
        org_id=row.org_id,
        ref=RepoRef(row.host, row.owner, row.name),
        provider_id=row.provider_id,
        default_branch=row.default_branch,
        merge_methods=METHODS.decode(row.merge_methods),
        archived=row.archived,
        available=row.available,
        url=row.url,
    )


def create_token(session: Connection, org_id: int, token: TokenRecord) -> None:
    """Store a new token under its public id."""
    session.execute(insert(tokens), {**TOKEN.row(token), "org_id": org_id})


def token_by_id(session: Connection, public_id: str) -> TokenRecord | None:
    """The token with this public id, whatever its state."""
    row = session.execute(SELECT_TOKEN_BY_ID, {"of_id": public_id}).first()
    return None if row is None else _token(row)


def tokens_of(session: Connection, org_id: int) -> tuple[TokenRecord, ...]:
    """An organization's tokens, whatever their state, oldest first."""
    statement = SELECT_TOKEN.where(tokens.c.org_id == org_id)
    return tuple(
        _token(row) for row in session.execute(statement.order_by(tokens.c.created_at, tokens.c.id))
    )


def live_tokens_of(session: Connection, org_id: int, now: datetime) -> tuple[TokenRecord, ...]:
    """An organization's tokens that open something at `now`, oldest first."""
    found = session.execute(SELECT_LIVE_TOKENS, {"of_org": org_id, "now": now})
    return tuple(_token(row) for row in found)


def live_token_count(session: Connection, org_id: int, now: datetime) -> int:
    """Return how many those are."""
    names = {"of_org": org_id, "now": now}
    return session.execute(COUNT_LIVE_TOKENS, names).scalar_one()


def _token(row: Row[*_FOUND]) -> TokenRecord:
    return TOKEN.value(row, {"org_slug": row.org_slug, "host": row.host})


def revoke_token(session: Connection, org_id: int, public_id: str, at: datetime) -> bool:
    """End a token now; False when it is unknown here or was revoked before."""
    statement = (
        update(tokens)
        .where(tokens.c.org_id == org_id, tokens.c.id == public_id, tokens.c.revoked_at.is_(None))
        .values(revoked_at=at)
    )
    return session.execute(statement).rowcount == 1


def expire_token(session: Connection, org_id: int, public_id: str, at: datetime) -> None:
    """Let a token end at `at`; one that ends earlier does so."""
    session.execute(
        update(tokens)
        .where(
            tokens.c.org_id == org_id,
            tokens.c.id == public_id,
            or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > at),
        )
        .values(expires_at=at)
    )


def touch_token(session: Connection, public_id: str, at: datetime) -> None:
    """Remember that it was used; nothing is written within a minute of the last time."""
    session.execute(
        update(tokens)
        .where(
            tokens.c.id == public_id,
            or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at <= at - TOUCH_EVERY),
        )
        .values(last_used_at=at)
    )
