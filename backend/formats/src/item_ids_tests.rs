use super::*;

const SEED: &str = "01a227f10bd072a68c5b8a772165e7f4";

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

#[test]
fn an_id_tells_where_its_item_is() {
    let response = format!("resp_{SEED}");
    let place = |is_input| {
        let response = response.clone();
        Some(ItemPlace { response, is_input })
    };
    for (id, expected) in [
        ("msg_SEED_0", place(false)),
        ("msg_0_clq_SEED_12", place(false)),
        ("item_0_clq_SEED_12", place(false)),
        ("_clq_SEED_1", place(false)),
        (&input_item_id(&response, 3), place(true)),
        ("msg_0", None),
        ("msg_SEED_", None),
        ("msg__0", None),
        ("msg_7f_0", None),
        ("msg_SEED_-1", None),
        ("msg_SEED\0_1", None),
        ("", None),
    ] {
        assert_eq!(ItemPlace::of(&id.replace("SEED", SEED)), expected, "{id}");
    }
}

#[test]
fn a_model_gets_its_own_ids_back() {
    for (id, expected) in [
        ("msg_0_clq_SEED_12", "msg_0"),
        // No model of the responses API gave it.
        ("msg_SEED_0", "msg_SEED_0"),
        ("a_clq_SEED_x", "a_clq_SEED_x"),
        ("user_clq_1_2", "user_clq_1_2"),
        // Of a service of the same kind, behind this one.
        ("a_clq_SEED_2_clq_SEED_0", "a_clq_SEED_2"),
    ] {
        let [id, expected] = [id, expected].map(|id| id.replace("SEED", SEED));
        let mut approval = json!({"type": "mcp_approval_response", "id": id, "approval_request_id": id, "name": id});
        restore(&mut approval);
        assert_eq!(
            [&approval["id"], &approval["approval_request_id"]],
            [&expected; 2]
        );
        assert_eq!(approval["name"], id);
    }
    for kind in ["item", "out"] {
        let mut ours = json!({"type": "message", "id": format!("{kind}_{SEED}_0")});
        restore(&mut ours);
        assert_eq!(ours, json!({"type": "message"}));
    }
    for mut odd in [
        json!("a"),
        json!({"id": 5}),
        json!({"id": null}),
        json!({}),
        json!({"id": "item_1_2"}),
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
    assert_eq!(
        added["item"]["id"],
        "msg_0_clq_01a227f10bd072a68c5b8a772165e7f4_1"
    );
    // Some servers call it otherwise each time.
    for theirs in ["msg_0", "msg_9", ""] {
        let delta = named(&mut ids, 1, json!({"item_id": theirs, "delta": "a"}));
        assert_eq!(
            delta["item_id"],
            "msg_0_clq_01a227f10bd072a68c5b8a772165e7f4_1"
        );
    }
    let other = named(&mut ids, 2, json!({"item": item("msg_0", "message")}));
    assert_eq!(
        other["item"]["id"],
        "msg_0_clq_01a227f10bd072a68c5b8a772165e7f4_2"
    );
    for (index, kind, id) in [
        (3, "reasoning", "rs_01a227f10bd072a68c5b8a772165e7f4_3"),
        (
            4,
            "web_search_call",
            "out_01a227f10bd072a68c5b8a772165e7f4_4",
        ),
    ] {
        let unnamed = named(&mut ids, index, json!({"item": {"type": kind}}));
        assert_eq!(unnamed["item"]["id"], id);
    }
    let plain = named(&mut ids, 1, json!({"part": {}}));
    assert_eq!(plain, json!({"part": {}}));
}

#[test]
fn events_that_tell_no_index_are_of_the_item_that_they_name() {
    let mut ids = ItemIds::new(SEED);
    for (id, kind) in [("a", "reasoning"), ("b", "message"), ("", "function_call")] {
        let Value::Object(mut event) = json!({"item": item(id, kind)}) else {
            unreachable!();
        };
        let index = ids.place(&event, true, 3);
        ids.name_event(index, &mut event);
    }
    assert_eq!(ids.told.keys().copied().collect::<Vec<_>>(), [3, 4, 5]);
    for (id, index) in [("a", 3), ("b", 4), ("fc_other", 5)] {
        let event = json!({"item_id": id});
        assert_eq!(ids.place(event.as_object().unwrap(), false, 3), index);
    }
}

#[test]
fn an_output_has_the_ids_of_the_events_of_its_items() {
    let told = || {
        let mut ids = ItemIds::new(SEED);
        for (index, kind) in [(3, "reasoning"), (4, "function_call"), (5, "message")] {
            named(&mut ids, index, json!({"item": item("x_0", kind)}));
        }
        ids
    };
    let indexes = |kinds: &[(&str, &str)]| {
        let items = kinds.iter().map(|(id, kind)| item(id, kind)).collect();
        let named = told().name_output(3, items);
        for (index, item) in &named {
            let theirs = if *index < 6 { "x_0" } else { kinds[3].0 };
            assert_eq!(item["id"], format!("{theirs}_clq_{SEED}_{index}"));
        }
        named.iter().map(|(index, _)| *index).collect::<Vec<_>>()
    };
    for id in ["x_0", "y_0"] {
        let [thought, call, message] =
            ["reasoning", "function_call", "message"].map(|kind| (id, kind));
        assert_eq!(indexes(&[thought, call, message]), [3, 4, 5]);
        assert_eq!(indexes(&[thought, message]), [3, 5]);
        assert_eq!(indexes(&[message, thought]), [5, 3]);
        // One that was not told, and one of another type.
        assert_eq!(indexes(&[thought, call, message, message]), [3, 4, 5, 6]);
        assert_eq!(
            indexes(&[thought, call, message, (id, "image")]),
            [3, 4, 5, 6]
        );
    }
    // An answer in one piece, and what is no item.
    let whole = vec![item("a", "message"), json!("b"), item("a", "message")];
    let output = ItemIds::new(SEED).name_output(0, whole);
    let ids = [0, 2].map(|number| format!("a_clq_{SEED}_{number}"));
    assert_eq!([&output[0].1["id"], &output[2].1["id"]], [&ids[0], &ids[1]]);
    let mut odd = ItemIds::new(SEED);
    named(&mut odd, u64::MAX, json!({"item": item("a", "message")}));
    let output = odd.name_output(0, vec![item("a", "message"), item("a", "message")]);
    assert_eq!([output[0].0, output[1].0], [u64::MAX, 0]);
}

#[test]
fn items_are_found_by_what_the_model_calls_them_before_their_order() {
    let mut ids = ItemIds::new(SEED);
    named(&mut ids, 0, json!({"item": item("a", "message")}));
    named(&mut ids, 1, json!({"item": item("b", "message")}));
    // Of this one a part was told alone.
    named(&mut ids, 2, json!({"item_id": "c", "delta": "C"}));
    let output = ["d", "c", "b"].map(|id| item(id, "message"));
    let indexes = ids.name_output(0, output.to_vec());
    let indexes = indexes.iter().map(|(index, _)| *index);
    assert_eq!(indexes.collect::<Vec<_>>(), [0, 2, 1]);
}
