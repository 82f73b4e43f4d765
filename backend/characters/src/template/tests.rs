use std::time::Duration;

use colloquy_base::{
    clock::{Clock as _, SystemClock},
    invalid::InvalidField,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::json;
use support::patience;

use super::*;
use crate::CharacterParameters;

fn character(personality: &str, parameters: Json) -> Character {
    let parameters: CharacterParameters = serde_json::from_value(parameters).unwrap();
    Character {
        reference: None,
        personality: personality.to_owned(),
        parameters,
    }
}

fn render_with(
    personality: &str,
    parameters: Json,
    params: Json,
) -> Result<RenderedCharacter, InvalidField> {
    let Json::Object(params) = params else {
        panic!("params are an object")
    };
    Ok(render(&character(personality, parameters), &params)?)
}

/// The first problem, as saving reports it.
fn check_syntax(character: &Character) -> Result<(), InvalidField> {
    problems(character)
        .next()
        .map_or(Ok(()), |problem| Err(problem.into()))
}

#[test]
fn parameters_of_the_request_win() {
    let rendered = render_with(
        "You are {{ robot_name }}, {{ age }}, {{ mood }}. {{ none_at_all }}|{{ live }}",
        json!({"robot_name": "Ada", "mood": "calm", "age": 36, "none_at_all": null}),
        json!({"mood": "cheerful", "live": true}),
    )
    .unwrap();
    assert_eq!(rendered.system, "You are Ada, 36, cheerful. |true");
}

#[test]
fn lists_and_nested_values_can_be_used() {
    let rendered = render_with(
        "{% for q in easy_questions %}- {{ q }}\n{% endfor %}{{ shop.city|upper }}{% if vip is defined %}!{% endif %}\
         {{ title|default('none') }}{{ greetings|length }}",
        json!({"easy_questions": ["Where?", "When?"], "shop": {"city": "Delft"}}),
        json!({}),
    )
    .unwrap();
    assert_eq!(rendered.system, "- Where?\n- When?\nDELFTnone0");
}

#[test]
fn prefix_greetings_and_interruption_are_templates_too() {
    let rendered = render_with(
        "P",
        json!({
            "robot_name": "Ada",
            "greetings": ["Hi {{ guest }}", "I am {{ robot_name }} <b>"],
            "interruption_message": "Sorry, {{ guest }}?",
            "patience_message": "One moment, {{ guest }}.",
            "conversation_prefix": "Talk to {{ guest }}",
        }),
        json!({"guest": "Bo"}),
    )
    .unwrap();
    assert_eq!(rendered.system, "P\n\nTalk to Bo");
    assert_eq!(rendered.greetings, ["Hi Bo", "I am Ada <b>"]);
    assert_eq!(rendered.interruption_message.as_deref(), Some("Sorry, Bo?"));
    let patience = rendered.patience_message.as_deref();
    assert_eq!(patience, Some("One moment, Bo."));
}

#[test]
fn the_prefix_is_used_once() {
    let prefix = json!({"conversation_prefix": "Talk to {{ guest }}"});
    let guest = json!({"guest": "Bo"});
    for (personality, expected) in [
        ("P. {{ conversation_prefix }}. Q", "P. Talk to Bo. Q"),
        ("P", "P\n\nTalk to Bo"),
        (
            "the conversation_prefix",
            "the conversation_prefix\n\nTalk to Bo",
        ),
        // A mention that does not print it is no place for it.
        (
            "{% if conversation_prefix %}Hello{% endif %}",
            "Hello\n\nTalk to Bo",
        ),
        (
            "{{ conversation_prefix if guest == 'Al' else 'P' }}",
            "P\n\nTalk to Bo",
        ),
        ("{{ conversation_prefix|length }}", "10\n\nTalk to Bo"),
        (
            "{% if conversation_prefix %}P. {{ conversation_prefix|upper }}{% endif %}",
            "P. TALK TO BO",
        ),
    ] {
        let rendered = render_with(personality, prefix.clone(), guest.clone()).unwrap();
        assert_eq!(rendered.system, expected);
    }
    let given = json!({"guest": "Bo", "conversation_prefix": "Hush"});
    // A parameter of the request does not replace it.
    for personality in ["{{ conversation_prefix }}", ""] {
        let rendered = render_with(personality, prefix.clone(), given.clone()).unwrap();
        assert_eq!(rendered.system, "Talk to Bo");
    }
    let cleared = json!({"guest": "Bo", "conversation_prefix": ""});
    let guarded = "P{% if conversation_prefix %}. {{ conversation_prefix }}{% endif %}";
    let rendered = render_with(guarded, prefix, cleared).unwrap();
    assert_eq!(rendered.system, "P. Talk to Bo");
    // Without one the name is as good as any other.
    let rendered = render_with("P. {{ conversation_prefix }}", json!({}), given).unwrap();
    assert_eq!(rendered.system, "P. Hush");
}

#[test]
fn values_are_not_templates() {
    let rendered = render_with("{{ a }}", json!({}), json!({"a": "{{ b }}"})).unwrap();
    assert_eq!(rendered.system, "{{ b }}");
}

#[test]
fn an_unknown_placeholder_is_named() {
    for personality in [
        "Hello {{ visitor }}",
        "{% if visitor %}x{% endif %}",
        "{{ visitor.name }}",
    ] {
        let error = render_with(personality, json!({}), json!({})).unwrap_err();
        assert_eq!(error.field, "character_params.visitor", "{personality}");
        assert!(error.message.contains("visitor"), "{}", error.message);
    }
    let error = render_with(
        "{{ shop.street }}",
        json!({"shop": {"city": "Delft"}}),
        json!({}),
    )
    .unwrap_err();
    assert_eq!(error.field, "personality");
}

#[test]
fn context_and_nested_params_are_refused() {
    let error = render_with("x", json!({}), json!({"context": "y"})).unwrap_err();
    assert_eq!(error.field, "character_params.context");
    for value in [json!(["a"]), json!({"b": 1})] {
        let error = render_with("x", json!({}), json!({"list": value})).unwrap_err();
        assert_eq!(error.field, "character_params.list");
    }
}

#[test]
fn costly_templates_are_refused() {
    let many: Vec<u32> = (0..100).collect();
    let parameters = json!({"easy_questions": many, "text": "x".repeat(30_000)});
    let slow = "{% for a in easy_questions %}{% for b in easy_questions %}{% for c in easy_questions %}{{ c }}\
                {% endfor %}{% endfor %}{% endfor %}";
    let error = render_with(slow, parameters.clone(), json!({})).unwrap_err();
    assert_eq!(error.message, "the template takes too long");
    let large = "{% for a in easy_questions %}{{ text }}{% endfor %}";
    let error = render_with(large, parameters, json!({})).unwrap_err();
    assert_eq!(error.message, "the template's result is too large");
}

#[test]
fn the_templates_of_a_character_share_what_they_may_cost() {
    let loops =
        "{% for a in easy_questions %}{% for b in easy_questions %}{% endfor %}{% endfor %}";
    let many = vec![1; 30];
    let parameters = |greetings: Vec<&str>| json!({"easy_questions": many, "greetings": greetings});
    render_with("", parameters(vec![loops; 2]), json!({})).unwrap();
    let error = render_with("", parameters(vec![loops; 100]), json!({})).unwrap_err();
    assert_eq!(error.message, "the template takes too long");
    assert!(error.field.starts_with("parameters.greetings["));
}

#[test]
fn the_language_has_what_is_promised() {
    let rendered = render_with(
        "{% if age >= 18 and not (mood == 'sad' or mood in ('sadder')) %}A{% elif age < -1 %}B{% else %}C{% endif %}\
         {% for key in shop %}{{ key }}={{ shop[key] }};{% endfor %}\
         {% for q in questions if q != 'b' %}{{ loop.index }}{{ q }}{{ ',' if not loop.last }}{% endfor %}\
         {% for q in greetings %}{% else %}none{% endfor %}\
         {{ questions[0] }}{{ questions[-1] }}{{ shop['city'][0]|lower }}{{ questions|last|upper|length }}\
         {{ missing|default('x')|title }}{{ ' y '|trim }}{{ 'zzaz'|trim('z') }}{{ mood|capitalize }}{{ questions|first }}\
         {# nothing #}{% raw %}{{ 1 + 1 }}{% endraw %}{{ 1.5 }}{{ mood is none }}{{ shop.none is undefined }}",
        json!({"age": 20, "mood": "calm", "shop": {"city": "Delft"}, "questions": ["a", "b", "c"]}),
        json!({}),
    )
    .unwrap();
    assert_eq!(
        rendered.system,
        "Acity=Delft;1a,2cnoneacd1XyaCalma{{ 1 + 1 }}1.5falsetrue"
    );
}

/// What the language leaves out, and the words that say so.
#[test]
fn what_could_grow_is_refused_by_name() {
    for (personality, named) in [
        ("{% set x = 'aa' %}{{ x }}", "unknown tag set"),
        ("{% set x %}aa{% endset %}", "unknown tag set"),
        ("{% include 'other' %}", "unknown tag include"),
        ("{% import 'other' as o %}", "unknown tag import"),
        ("{% extends 'other' %}", "unknown tag extends"),
        ("{% macro m() %}{% endmacro %}", "unknown tag macro"),
        ("{% filter upper %}x{% endfilter %}", "unknown tag filter"),
        ("{%- with a = 1 -%}{%- endwith -%}", "unknown tag with"),
        ("{% raw %}x{% endraw %}{% set y = 1 %}", "unknown tag set"),
        ("{{ 'a' ~ 'b' }}", "operator `~`"),
        ("{{ 'a' * 1000000000 }}", "operator `*`"),
        ("{{ 'a' + 'b' }}", "operator `+`"),
        ("{{ 2 ** 100 }}", "operator `**`"),
        ("{{ 1 - 1 }}", "operator `-`"),
        ("{{ -b }}", "operator `-`"),
        ("{{ - - 1 }}", "operator `-`"),
        ("{{ 1 / 2 }}", "operator `/`"),
        ("{{ 1 // 2 }}", "operator `//`"),
        ("{{ '%1000000000d' % 1 }}", "operator `%`"),
        ("{{ [1, 2] }}", "lists"),
        ("{{ (1, 2) }}", "lists"),
        ("{{ 1, 2 }}", "lists"),
        ("{{ {'a': 1} }}", "maps"),
        ("{{ b[0:1] }}", "slices"),
        ("{{ range(10) }}", "calls"),
        ("{{ b.items() }}", "calls"),
        ("{{ 'x'.upper() }}", "calls"),
        ("{{ 'x'|indent(1000000) }}", "unknown filter indent"),
        ("{{ 'x'|default(value=1) }}", "named arguments"),
        ("{{ 4 is divisibleby(2) }}", "unknown test divisibleby"),
        ("{{ 4 is not odd }}", "unknown test odd"),
        ("{% for a in b recursive %}{{ a }}{% endfor %}", "recursive"),
        (
            "{% for a in b|first %}{% endfor %}",
            "a loop runs over a list",
        ),
        (
            "{% for a in 'abc' %}{% endfor %}",
            "a loop runs over a list",
        ),
        ("{% for a in [1] %}{% endfor %}", "a loop runs over a list"),
        ("{% for (a, b) in b %}{% endfor %}", "a loop is written"),
        ("{{ ", "end of"),
        ("{% if %}", ""),
        ("{% for x in y %}", ""),
    ] {
        let parameters = json!({"b": [], "y": []});
        let checked = check_syntax(&character(personality, parameters.clone())).unwrap_err();
        assert_eq!(checked.field, "personality", "{personality}");
        assert!(
            checked.message.contains(named),
            "{personality}: {}",
            checked.message
        );
        let rendered = render_with(personality, parameters, json!({})).unwrap_err();
        assert_eq!(rendered.field, "personality", "{personality}");
    }
}

/// Small templates that once took the whole process down: chains that the parser followed to the end of its stack.
fn chains() -> Vec<String> {
    let chain = |piece: &str, count: usize| piece.repeat(count);
    vec![
        format!("{{{{ {}1 }}}}", chain("-", 5_118)),
        format!("{{{{ 1{} }}}}", chain("-1", 2_500)),
        format!("{{{{ a{} }}}}", chain(".b", 2_500)),
        format!("{{{{ {}a }}}}", chain("not ", 1_200)),
        format!("{{{{ a{} }}}}", chain("[0]", 1_700)),
        format!("{{{{ a{} }}}}", chain(" and a", 900)),
        format!("{{{{ a{} }}}}", chain(" or a", 900)),
        format!("{{{{ a{} }}}}", chain("|upper", 900)),
        format!("{{{{ a{} }}}}", chain(" if a else a", 500)),
        format!("{{{{ a{} }}}}", chain(" is defined", 500)),
        format!("{{{{ a{} }}}}", chain(" == a", 1_000)),
        format!("{{{{ a{} }}}}", chain(" in a", 1_000)),
        format!("{{{{ {}1{} }}}}", chain("(", 2_500), chain(")", 2_500)),
        format!("{{{{ {}1{} }}}}", chain("[", 2_500), chain("]", 2_500)),
        format!("{{{{ {}1{} }}}}", chain("{1:", 1_500), chain("}", 1_500)),
        format!("{{{{ a{}{} }}}}", chain("|default(a", 500), chain(")", 500)),
        format!("{{{{ a{}0{} }}}}", chain("[a", 1_500), chain("]", 1_500)),
        format!("{{% if a %}}{}{{% endif %}}", chain("{% elif a %}", 400)),
        format!("{}{}", chain("{% if a %}", 400), chain("{% endif %}", 400)),
        format!(
            "{}{}",
            chain("{% for b in a %}", 300),
            chain("{% endfor %}", 300)
        ),
        format!("{{% if {}a", chain("not ", 2_000)),
        format!("{{% set {}a = 1 %}}", chain("(", 2_000)),
    ]
}

#[test]
fn chains_are_refused_before_they_are_parsed() {
    for template in chains() {
        for parameters in [json!({}), json!({"greetings": [template.clone()]})] {
            let error = check_syntax(&character(&template, parameters)).unwrap_err();
            assert_eq!(error.field, "personality");
        }
        let parameters = json!({"interruption_message": template});
        let error = check_syntax(&character("", parameters)).unwrap_err();
        assert_eq!(error.field, "parameters.interruption_message");
    }
}

/// The deepest templates that are let through; the threads of tests have stacks as the server's have.
#[test]
fn the_deepest_templates_are_parsed_and_filled_in() {
    let parameters = json!({"a": [[1]], "t": true});
    for template in [
        format!("{}x{}", "{% if t %}".repeat(50), "{% endif %}".repeat(50)),
        format!(
            "{}x{}",
            "{% for b in a %}".repeat(50),
            "{% endfor %}".repeat(50)
        ),
        format!(
            "{{% if not t %}}{}x{{% endif %}}",
            "{% elif t %}".repeat(49)
        ),
        format!(
            "{}{{{{ {}t{} }}}}{}",
            "{% if t %}".repeat(50),
            "not ".repeat(80) + &"(".repeat(8),
            ")".repeat(8),
            "{% endif %}".repeat(50)
        ),
        format!("{{{{ {}t }}}}", "not ".repeat(98)),
        format!("{{{{ t{} }}}}", " and t".repeat(49)),
        format!("{{{{ t{} }}}}", " if t else t".repeat(24)),
        format!("{{{{ 'x'{} }}}}", "|upper".repeat(49)),
        format!("{{{{ a{} is defined }}}}", "[0]".repeat(2)),
    ] {
        render_with(&template, parameters.clone(), json!({})).unwrap();
    }
}

#[test]
fn templates_and_values_are_bounded_together() {
    let error = |parameters: Json| check_syntax(&character("", parameters)).unwrap_err();
    let greetings = vec!["é".repeat(4_000); 100];
    let refused = error(json!({"greetings": greetings}));
    assert!(
        refused.message.contains("512 KiB together"),
        "{}",
        refused.message
    );
    assert!(refused.field.starts_with("parameters.greetings["));
    let refused = error(json!({"greetings": vec!["{{ a }}".repeat(500); 50]}));
    assert!(refused.message.contains("too many"), "{}", refused.message);
    let refused =
        error(json!({"interruption_message": format!("{{{{ '{}' }}}}", "x".repeat(5_000))}));
    assert!(refused.message.contains("4 KiB"), "{}", refused.message);
    let refused = error(json!({"interruption_message": format!("{{{{ {} }}}}", "x".repeat(300))}));
    assert!(refused.message.contains("200 bytes"), "{}", refused.message);

    let mut deep = json!(1);
    for _ in 0..20 {
        deep = json!([deep]);
    }
    for (value, named) in [
        (deep, "inside each other"),
        (json!(vec![0; 4_001]), "4000 values"),
        (json!("x".repeat(33_000)), "32 KiB"),
        (json!(vec!["x".repeat(30_000); 40]), "1 MiB of text"),
    ] {
        let refused = render_with("", json!({"big": value}), json!({})).unwrap_err();
        assert_eq!(refused.field, "parameters.big", "{named}");
        assert!(refused.message.contains(named), "{}", refused.message);
    }
    let many: Map<String, Json> = (0..4_100).map(|n| (n.to_string(), json!(n))).collect();
    let refused = render_with("", json!({}), Json::Object(many)).unwrap_err();
    assert!(refused.field.starts_with("character_params."));
}

/// Text that the tokens are looked for in again and again.
#[test]
fn any_template_is_checked_soon() {
    // What takes the square of its length takes minutes.
    let fill = |piece: &str| piece.repeat(128 * 1024 / piece.len());
    for template in [
        fill("{"),
        fill("{#"),
        fill("{##}"),
        fill("{# {"),
        fill("{% raw %}"),
        fill("{% raw %}{% endraw %}"),
        format!("{{% raw %}}{}", fill("{%")),
        format!("{{% raw %}}{}", fill("{% endraw")),
        fill("{{ a|upper }}"),
        fill("{{ '"),
        format!("{{{{ '{}", fill("\\")),
        format!("{{{{ {}", fill("a")),
        format!("{{{{ {}", fill("9")),
        format!("{{{{ {}", fill(" ")),
        fill("{%- -%}\n"),
    ] {
        let parameters = json!({"greetings": vec![template.clone(); 3]});
        let began = SystemClock.instant();
        let _ = check_syntax(&character(&template, parameters));
        let took = SystemClock.instant() - began;
        println!("{took:?} {}", &template[..30]);
        assert!(
            took < patience(Duration::from_secs(20)),
            "{took:?}: {}",
            &template[..30]
        );
    }
}

/// Values that take as long as the limits allow, and templates that make the most of them.
fn worst_cases() -> (Json, Vec<String>) {
    let texts = vec!["x".repeat(8_000); 60];
    let mut haystack = "a".repeat(32_000);
    haystack.push('b');
    let needle = format!("{}c", "a".repeat(16_000));
    let parameters = json!({
        "n": vec![1; 100],
        "p": {"texts": texts, "more": vec![json!({"a": 1}); 500]},
        "q": {"texts": texts, "more": vec![json!({"a": 1}); 500]},
        "needle": needle,
        "haystack": haystack,
        "sharp": "ŉ".repeat(16_000),
    });
    let bodies = [
        "{% if p == q %}{% endif %}",
        "{% if p < q %}{% endif %}",
        "{% if p in p.more %}{% endif %}",
        "{% if p in 'x' %}{% endif %}",
        "{% if p in needle %}{% endif %}",
        "{% if needle in haystack %}{% endif %}",
        "{% if haystack == haystack %}{% endif %}",
        "{% if p.texts == q.texts %}{% endif %}",
        "{% for c in haystack %}{% endfor %}",
        "{% for c in p.more if c == p %}{% endfor %}",
        "{% if sharp|upper|lower|title|capitalize|upper %}{% endif %}",
        "{% if haystack|trim('abcdefghijklmnopqrstuvwxyz') %}{% endif %}",
        "{% if haystack|length > p.texts|length %}{% endif %}",
        "{% if p.more|last == q.more|last %}{% endif %}",
        "{{ p|default(q, p) if p.more|last }}",
        "{% if sharp|upper < sharp|upper %}{% endif %}",
        "{{ sharp|upper if p == q else sharp }}",
    ];
    let looped = bodies.iter().map(|body| {
        format!("{{% for a in n %}}{{% for b in n %}}{body}{{% endfor %}}{{% endfor %}}")
    });
    let flat = bodies.iter().map(|body| body.repeat(120_000 / body.len()));
    (parameters, looped.chain(flat).collect())
}

#[test]
fn the_worst_templates_end_soon() {
    let (parameters, templates) = worst_cases();
    for template in templates {
        let began = SystemClock.instant();
        // Some end in time, most do not; all of them end.
        let _ = render_with(&template, parameters.clone(), json!({}));
        let took = SystemClock.instant() - began;
        let most = patience(Duration::from_secs(if cfg!(debug_assertions) {
            10
        } else {
            1
        }));
        assert!(
            took < most,
            "{took:?}: {}",
            &template[..template.len().min(200)]
        );
        println!("{took:?} {}", &template[..template.len().min(100)]);
    }
}

/// Whatever is made of the language's words, in whatever order, is refused or filled in within the bounds.
#[test]
fn any_words_end_within_the_bounds() {
    const WORDS: [&str; 62] = [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "{%-",
        "-%}",
        " if ",
        " elif ",
        " else ",
        " endif ",
        " for ",
        " endfor ",
        " in ",
        " is ",
        " not ",
        " and ",
        " or ",
        " recursive ",
        " raw ",
        " endraw ",
        " set ",
        " macro ",
        " include ",
        " n ",
        " p ",
        " a ",
        " b ",
        " loop",
        ".index",
        ".more",
        ".texts",
        " missing ",
        "|upper",
        "|first",
        "|last",
        "|default(",
        "|trim(",
        "|length",
        "|nothing",
        " defined ",
        " none ",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "=",
        "==",
        "<",
        "-",
        "+",
        "*",
        "%",
        "~",
        "'x'",
        "1",
        "1e9",
    ];
    let (parameters, _) = worst_cases();
    let blocks = [
        "{% for a in n %}",
        "{% for b in p.more %}",
        "{% if a %}",
        "{% elif b in p %}",
        "{% else %}",
        "{% endif %}",
        "{% endfor %}",
        "{{ a }}",
        "{{ p }}",
        "{{ a.b|upper }}",
        "text",
    ];
    let mut random = StdRng::seed_from_u64(rand::random());
    let mut filled = 0;
    for _ in 0..1_500 {
        let mut template = String::new();
        for _ in 0..random.random_range(0..60) {
            match random.random_range(0..3) {
                0 => template.push_str(blocks.choose(&mut random).unwrap()),
                _ => template.push_str(WORDS.choose(&mut random).unwrap()),
            }
        }
        let short = random.random();
        if short {
            template.truncate(template.find("%}").map_or(0, |at| at + 2));
            template.push_str("{% endfor %}");
        }
        let given = if short {
            json!({"n": [1, 2], "p": {"more": []}})
        } else {
            parameters.clone()
        };
        match render_with(&template, given, json!({"a": 1, "b": "x"})) {
            Ok(rendered) => {
                filled += 1;
                assert!(rendered.system.len() <= MAX_OUTPUT_BYTES);
            }
            // It is always the fault of what was given.
            Err(error) => assert_ne!(error.message, NOT_TEXT, "{template}"),
        }
    }
    assert!(filled > 10, "only {filled} were filled in");
}
