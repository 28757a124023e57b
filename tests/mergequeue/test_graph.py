"""The graph of a line: who stands on whom while nodes come at the end and go by landing."""

from service.mergequeue.engine import targets
from service.mergequeue.engine.model import Member
from service.mergequeue.engine.state.graph import Graph, Node, places
from service.vocabulary import Sha


def a_node(*prs: int, touches: str = "a") -> Node:
    members = tuple(Member(pr, f"entry {pr}", Sha(f"{pr:040x}")) for pr in prs)
    return Node(members, prs[-1] * 10, targets.of(touches))


def a_graph(*nodes: Node, single: bool = False) -> Graph:
    graph = Graph(single=single)
    for node in nodes:
        graph.append(node)
    return graph


def ahead(graph: Graph, pr: int) -> list[int]:
    node = graph.nodes[graph.of[pr]]
    return [member.pr for member in graph.members(node.ahead & graph.live)]


def below(graph: Graph, touches: str) -> list[int]:
    return [member.pr for member in graph.members(graph.closure(targets.of(touches)))]


def test_a_node_stands_on_those_it_meets_and_on_theirs() -> None:
    graph = a_graph(a_node(1), a_node(2, touches="b"), a_node(3, touches="ab"), a_node(4))
    assert ahead(graph, 2) == []
    assert ahead(graph, 4) == [1, 2, 3]


def test_an_entry_behind_all_stands_where_it_would_if_it_were_drawn() -> None:
    graph = a_graph(a_node(1), a_node(2, touches="b"), a_node(3, touches="c"))
    assert below(graph, "ac") == [1, 3]
    assert below(graph, "d") == []
    end = graph.before(30)
    assert list(places(graph.closure(targets.of("abc"), end))) == [0, 1]


def test_what_landed_is_below_nobody() -> None:
    graph = a_graph(a_node(1), a_node(2, touches="b"), a_node(3, touches="ab"))
    assert not graph.is_next(3)
    graph.land(1)
    assert ahead(graph, 3) == [2]
    assert below(graph, "a") == [2, 3]
    graph.land(2)
    assert graph.is_next(3)
    assert [node.members[0].pr for node in graph.standing()] == [3]


def test_the_rest_of_a_batch_touches_what_the_whole_touched() -> None:
    batch = a_node(2, 3)
    graph = a_graph(a_node(1, touches="b"), batch, a_node(4))
    graph.land(2)
    assert graph.is_partial(3)
    assert not graph.is_partial(4)
    assert ahead(graph, 4) == [3]
    assert below(graph, "b") == [1]


def test_a_chain_in_which_a_batch_has_begun_to_land() -> None:
    graph = a_graph(a_node(1, 2, 3), a_node(4), a_node(5), single=True)
    graph.land(1)
    assert ahead(graph, 5) == [2, 3, 4]
    graph.land(2)
    graph.land(3)
    assert ahead(graph, 5) == [4]
    assert below(graph, "z") == [4, 5]


def test_only_the_first_of_a_batch_is_next() -> None:
    graph = a_graph(a_node(1, 2))
    assert graph.is_next(1)
    assert not graph.is_next(2)


def test_an_older_value_does_not_see_what_changes() -> None:
    graph = a_graph(a_node(1), a_node(2))
    newer = graph.copy()
    newer.land(1)
    newer.append(a_node(3))
    assert ahead(graph, 2) == [1]
    assert below(graph, "a") == [1, 2]
    assert below(newer, "a") == [2, 3]
