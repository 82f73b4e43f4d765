use super::*;

const SEED: &str = "7f";

fn named(ids: &mut ItemIds, index: u64, event: Value) -> Value {
    let Value::Object(mut event) = event else {
        panic!("an event is an object");
    };
    ids.name_event(index, &mut event);
    Value::Object(event)
}

fn item(id: &str, kind: &str) -> Value {
    json!({"id": id, "type": kind})
}

fn ids_of(output: &[Value]) -> Vec<&str> {
    output
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect()
}

#[test]
fn an_id_tells_where_its_item_is() {
    let place = |response: &str, is_input| {
        Some(ItemPlace {
            response: response.to_owned(),
            is_input,
        })
    };
    for (id, expected) in [
        ("msg_7f_0", place("resp_7f", false)),
        ("msg_0_clq_7f_12", place("resp_7f", false)),
        ("item_0_clq_7f_12", place("resp_7f", false)),
        ("_clq_7f_1", place("resp_7f", false)),
        (&input_item_id("resp_7f", 3), place("resp_7f", true)),
        ("msg_0", None),
        ("msg_7f_", None),
        ("msg__0", None),
        ("msg_7f_-1", None),
        ("msg_'_0", None),
        ("msg_\0_0", None),
        ("", None),
    ] {
        assert_eq!(ItemPlace::of(id), expected, "{id}");
    }
}

#[test]
fn a_model_gets_its_own_ids_back() {
    for (id, expected) in [
        ("msg_0_clq_7f_12", "msg_0"),
        ("msg_7f_0", "msg_7f_0"),
        ("a_clq_7f_x", "a_clq_7f_x"),
        // Of a service of the same kind, in front of this one.
        ("a_clq_1_2_clq_7f_0", "a_clq_1_2"),
    ] {
        let mut approval = json!({"type": "mcp_approval_response", "id": id, "approval_request_id": id, "name": id});
        restore(&mut approval);
        assert_eq!(
            [&approval["id"], &approval["approval_request_id"]],
            [expected; 2]
        );
        assert_eq!(approval["name"], id);
    }
    for mut odd in [
        json!("a_clq_7f_0"),
        json!({"id": 5}),
        json!({"id": null}),
        json!({}),
    ] {
        let before = odd.clone();
        restore(&mut odd);
        assert_eq!(odd, before);
    }
}

#[test]
fn events_of_an_item_have_one_id() {
    let mut ids = ItemIds::new(SEED);
    let added = named(&mut ids, 1, json!({"item": item("msg_0", "message")}));
    assert_eq!(added["item"]["id"], "msg_0_clq_7f_1");
    // Some servers call it otherwise each time.
    for theirs in ["msg_0", "msg_9", ""] {
        let delta = named(&mut ids, 1, json!({"item_id": theirs, "delta": "a"}));
        assert_eq!(delta["item_id"], "msg_0_clq_7f_1");
    }
    let other = named(&mut ids, 2, json!({"item": item("msg_0", "message")}));
    assert_eq!(other["item"]["id"], "msg_0_clq_7f_2");
    for (index, kind, id) in [
        (3, "reasoning", "rs_7f_3"),
        (4, "web_search_call", "out_7f_4"),
    ] {
        let unnamed = named(&mut ids, index, json!({"item": {"type": kind}}));
        assert_eq!(unnamed["item"]["id"], id);
    }
    let plain = named(&mut ids, 1, json!({"part": {}}));
    assert_eq!(plain, json!({"part": {}}));
}

#[test]
fn the_output_has_the_ids_of_the_events() {
    let told = || {
        let mut ids = ItemIds::new(SEED);
        for (index, kind) in [(3, "reasoning"), (4, "function_call"), (5, "message")] {
            named(&mut ids, index, json!({"item": item("x_0", kind)}));
        }
        ids
    };
    let (thought, call) = (item("x_0", "reasoning"), item("x_0", "function_call"));
    let message = item("x_0", "message");
    for (output, expected) in [
        (
            vec![thought.clone(), call.clone(), message.clone()],
            vec![3, 4, 5],
        ),
        // One is left out, or they come in another order.
        (vec![call.clone(), message.clone()], vec![4, 5]),
        (
            vec![message.clone(), thought.clone(), call.clone()],
            vec![5, 3, 4],
        ),
        // One that was not told.
        (
            vec![
                thought.clone(),
                call.clone(),
                message.clone(),
                message.clone(),
            ],
            vec![3, 4, 5, 6],
        ),
        (
            vec![item("x_0", "image"), thought, call, message],
            vec![7, 3, 4, 5],
        ),
    ] {
        let mut output = output;
        told().name_output(3, &mut output);
        let expected = expected.iter().map(|number| format!("x_0_clq_7f_{number}"));
        assert_eq!(ids_of(&output), expected.collect::<Vec<_>>());
    }
    // Called otherwise at the end.
    let mut output = [
        item("y_0", "reasoning"),
        item("y_0", "function_call"),
        item("y_0", "message"),
    ];
    told().name_output(3, &mut output);
    assert_eq!(
        ids_of(&output),
        [3, 4, 5].map(|number| format!("x_0_clq_7f_{number}"))
    );
    // An answer in one piece, and what is no item.
    let mut output = [item("a", "message"), json!("b"), item("a", "message")];
    ItemIds::new(SEED).name_output(0, &mut output);
    assert_eq!(
        [&output[0]["id"], &output[2]["id"]],
        ["a_clq_7f_0", "a_clq_7f_2"]
    );
}
