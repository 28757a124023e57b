"""The graph of a line: what each node depends on, while nodes are added at its end."""

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
    return [member.pr for member in graph.members(node.ahead)]


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
    assert list(places(graph.closure(targets.of("b"), 1))) == []
    end = graph.before(30)
    assert list(places(graph.closure(targets.of("abc"), end))) == [0, 1]


def test_a_base_of_neighbors_and_one_with_a_gap_are_in_line_order() -> None:
    graph = a_graph(a_node(1, 2), a_node(3, touches="b"), a_node(4, 5))
    assert [member.pr for member in graph.members(0b011)] == [1, 2, 3]
    assert [member.pr for member in graph.members(0b101)] == [1, 2, 4, 5]
    assert graph.members(0) == ()


def test_an_older_value_does_not_see_what_changes() -> None:
    graph = a_graph(a_node(1), a_node(2))
    newer = graph.copy()
    newer.append(a_node(3))
    assert below(graph, "a") == [1, 2]
    assert below(newer, "a") == [1, 2, 3]


def test_a_member_with_none_ahead_leaves_the_others_as_they_are() -> None:
    graph = a_graph(a_node(1, 2), a_node(3, touches="b"), a_node(4, touches="ab"), a_node(5))
    rest = graph.without(1)
    assert rest is not None
    assert ahead(rest, 4) == [2, 3]
    after = rest.without(3)
    assert after is not None
    assert (ahead(after, 4), ahead(after, 5), below(after, "b")) == ([2], [2, 4], [2, 4])
    assert below(graph, "b") == [1, 2, 3, 4]


def test_a_graph_is_drawn_again_without_a_member_that_others_stand_between() -> None:
    graph = a_graph(a_node(1, 2), a_node(3))
    assert graph.without(2) is None
    assert graph.without(3) is None
    assert graph.without(9) is None
