//! The page for the browser: complete, self-contained, and safe from its content.

mod samples;

use fathom_report::document::{CellDoubt, Document, Found, Verdict};
use fathom_report::page::{Level, Page};
use fathom_report::{document, html, markdown};

fn pages() -> Vec<(&'static str, String)> {
    let page = |(name, bytes): (&'static str, Vec<u8>)| {
        (name, html::document(&document::read(&bytes).unwrap()))
    };
    samples::all().into_iter().map(page).collect()
}

/// The tags of a page in order, without the content of scripts and styles.
fn tags(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start..];
        if rest.starts_with("<!--") {
            rest = &rest[rest.find("-->").expect("a comment ends")..];
            continue;
        }
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[1..end];
        let name = tag.split_whitespace().next().unwrap_or("").to_owned();
        rest = &rest[end..];
        for raw in ["script", "style"] {
            if name == raw {
                rest = &rest[rest.find(&format!("</{raw}>")).expect("a raw element ends")..];
            }
        }
        tags.push(name);
    }
    tags
}

#[test]
fn a_long_list_of_trials_is_shortened_with_the_same_words_in_every_report() {
    let (_, bytes) = samples::all().into_iter().find(|(name, _)| *name == "repeats").unwrap();
    let mut document = document::read(&bytes).unwrap();
    let list = |document: &Document| {
        let text = markdown::page(&Page::of(document, Level::Complete));
        let row = text.lines().find(|line| line.starts_with("| random")).unwrap().to_owned();
        row.split('|').rev().nth(2).unwrap().trim().to_owned()
    };
    assert_eq!(list(&document), "1 2? 3");
    let link =
        |number: usize, mark: &str| format!("<a href=\"#trial-{number}\">{number}{mark}</a>");
    let linked = format!("{} {} {}", link(1, ""), link(2, "?"), link(3, ""));
    assert!(html::document(&document).contains(&linked));
    for repeat in 3..12 {
        let mut trial = document.trials[0].clone();
        trial.place.repeat = repeat;
        document.trials.push(trial);
    }
    assert_eq!(list(&document), "1 2? 3 … 12 (12)");
    let linked = format!("{linked} … {} (12)", link(12, ""));
    assert!(html::document(&document).contains(&linked));
}

#[test]
fn the_figures_that_matter_stand_large_below_the_answer() {
    let pages = pages();
    let names = |of: &str| -> Vec<String> {
        let page = &pages.iter().find(|(name, _)| *name == of).unwrap().1;
        let head = page.split("<header>").nth(1).unwrap().split("</header>").next().unwrap();
        let (answer, rest) = head.split_once("<dl class=\"tiles\">").unwrap();
        assert!(answer.contains("class=\"answer"), "{of}: the answer is above them");
        let tiles = rest.split("</dl>").next().unwrap().split("<dt>").skip(1);
        tiles.map(|tile| tile.split("</dt>").next().unwrap().to_owned()).collect()
    };
    assert_eq!(names("void"), ["IOPS", "MiB/s", "p50", "p99"]);
    let quick = ["sequential reads", "sequential writes", "random reads", "random writes"];
    let unit = |nth: usize| if nth < 2 { "MB/s" } else { "IOPS" };
    let quick: Vec<String> =
        quick.iter().enumerate().map(|(nth, name)| format!("{name}, {}", unit(nth))).collect();
    assert_eq!(names("quick"), quick);
    assert_eq!(names("peak").len(), 4);
    assert_eq!(names("peak")[..2], ["IOPS", "MiB/s"]);
    assert!(names("peak")[3].contains("queue depth"), "{:?}", names("peak"));
    assert_eq!(names("map").len(), 4);
    assert_eq!(names("sustain").len(), 3);
    assert!(names("sweep").iter().any(|name| name.starts_with("highest IOPS: queue-depth")));
}

/// Zeros that the target saved are the fastest, and must not stand large.
#[test]
fn a_point_whose_data_was_saved_is_void_and_not_among_the_figures_that_matter() {
    let mut document = samples::experiments::sweep();
    let highest = |document: &document::Document| {
        let page = html::document_without_library(document);
        let name = page.split("<dt>highest IOPS: ").nth(1).unwrap();
        name.split("</dt>").next().unwrap().split("; ").next().unwrap().to_owned()
    };
    let best = highest(&document);
    let labels = best.split(", ").map(|one| one.split(' ').nth(1).unwrap().to_owned()).collect();
    let last = document.conclusion.as_mut().unwrap();
    let Some(document::Found::Sweep(found)) = &mut last.found else { panic!("a sweep") };
    found.saved = Vec::from([labels]);
    document.judge_by_conclusion();
    assert_ne!(highest(&document), best);
    let page = html::document_without_library(&document);
    assert!(page.contains(">void</"), "its row in the table");
    // The sentence counts the trials of the row.
    let void = document.trials.iter().filter(|one| one.verdict == document::Verdict::Void).count();
    assert_eq!(void, 2);
    assert!(page.contains("; 2 of them are void, which this study is there to find"));
}

/// Depths 8 and 32 give the same, and a reader would set what is named.
#[test]
fn the_highest_is_the_point_that_costs_least_of_those_that_cannot_be_told_from_it() {
    let page = html::document_without_library(&samples::experiments::sweep());
    let tile = page.split("<dt>highest IOPS: ").nth(1).unwrap().split("</dt>").next().unwrap();
    assert!(tile.starts_with("queue-depth 8, block-size 4k; "), "{tile}");
    assert!(tile.ends_with(" more cannot be told from it"), "{tile}");
}

/// An answer that is open is neither good nor praised.
#[test]
fn an_undecided_comparison_is_a_doubt_and_both_sides_are_named() {
    let mut document = samples::experiments::ab();
    let answer = |document: &document::Document| {
        let page = html::document_without_library(document);
        let answer = page.split("class=\"answer").nth(1).unwrap();
        (answer.split("</").next().unwrap().to_owned(), page)
    };
    let (slower, page) = answer(&document);
    assert!(
        slower.starts_with(" is-void") && slower.ends_with("; the measurement is sound"),
        "{slower}"
    );
    assert!(page.contains("<title>Storage A/B: /data/a against /data/b</title>"));
    assert!(page.contains("<dt>A</dt>") && page.contains("<dt>B</dt>"));
    assert!(!page.contains("<dt>target</dt>"));
    let Some(document::Found::Ab(found)) = &mut document.conclusion.as_mut().unwrap().found else {
        panic!("two sides")
    };
    for one in &mut found.figures {
        one.answer = document::SideAnswer::Undecided;
    }
    let (open, _) = answer(&document);
    assert!(open.starts_with(" is-suspect") && !open.contains("sound"), "{open}");
}

/// Its probes met the objective, and its long run missed it.
#[test]
fn a_load_that_its_official_run_refutes_is_not_shown_as_the_answer() {
    let mut document = samples::experiments::objective();
    let class = |document: &document::Document| {
        let page = html::document_without_library(document);
        let class = page.split("class=\"answer").nth(1).unwrap();
        class.split('"').next().unwrap().to_owned()
    };
    assert_eq!(class(&document), " is-sound");
    let mut open = document.clone();
    let last = open.conclusion.as_mut().unwrap();
    let Some(document::Found::Peak(found)) = &mut last.found else { panic!("a search") };
    found.official_is_open = true;
    assert_eq!(class(&open), " is-suspect");
    let is_at = |trial: &document::Trial, load| trial.place.coordinates[0].value == Some(load);
    let mut official = document.trials.iter().find(|one| is_at(one, 2800.0)).unwrap().clone();
    official.place.role = document::Role::Official;
    document.trials.push(official);
    let last = document.conclusion.as_mut().unwrap();
    let Some(document::Found::Peak(found)) = &mut last.found else { panic!("a search") };
    assert_eq!(found.choice, Some(2800.0));
    found.choice = Some(2000.0);
    found.equals = Vec::from([2000.0]);
    found.probes.iter_mut().find(|one| one.value == 2800.0).unwrap().meets = Some(false);
    assert_eq!(class(&document), " is-suspect");
    let page = html::document_without_library(&document);
    let tiles = page.split("<dl class=\"tiles\">").nth(1).unwrap().split("</dl>").next().unwrap();
    assert!(tiles.contains("2,000") && !tiles.contains("2,800"), "{tiles}");
    for words in ["the answer, by its probes", "its official run misses the objective"] {
        assert_eq!(page.matches(words).count(), 1, "{words}");
    }
}

/// `./test pages` looks at pages in a browser; this holds for all of them without one.
#[test]
fn a_screen_reader_finds_the_content_and_a_text_for_each_chart() {
    for (name, page) in pages() {
        assert_eq!(page.matches("<main>").count(), 1, "{name}");
        assert!(
            !page.contains("<th></th>") && !page.contains("<th class=\"words\"></th>"),
            "{name}"
        );
        let scrolling = page.matches("class=\"scroll").count();
        assert_eq!(page.matches("tabindex=\"0\" role=\"group\"").count(), scrolling, "{name}");
        let start = page.find("id=\"figures\">").unwrap() + "id=\"figures\">".len();
        let json = page[start..].split("</script>").next().unwrap();
        let figures: serde_json::Value = serde_json::from_str(json).unwrap();
        for figure in figures.as_array().unwrap() {
            let id = figure["id"].as_str().unwrap();
            let place = page.split(&format!("<div id=\"{id}\"")).nth(1);
            let place = place.unwrap_or_else(|| panic!("{name}: {id}")).split('>').next().unwrap();
            assert!(place.contains("role=\"img\""), "{name}: {id}");
            let text = place.split("aria-label=\"").nth(1).unwrap().split('"').next().unwrap();
            assert!(20 < text.len() && text.ends_with('.'), "{name}: {id}: {text}");
        }
    }
}

/// The reader asks with buttons and an input, which a keyboard reaches; the answers are in the file.
#[test]
fn a_map_answers_what_can_be_had_within_a_limit() {
    let (_, bytes) = samples::all().into_iter().find(|(name, _)| *name == "map").unwrap();
    let page = html::document_without_library(&document::read(&bytes).unwrap());
    let between = |text: &str, from: &str, to: &str| -> String {
        text.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned()
    };
    assert_eq!(page.matches("<button type=\"button\" data-chart=\"chart-map\"").count(), 4);
    assert!(page.contains("data-plot=\"2\" aria-pressed=\"true\">p99</button>"));
    let input = between(&page, "<input type=\"range\"", ">");
    let chosen: usize = between(&input, " value=\"", "\"").parse().unwrap();
    assert!(
        input.contains("id=\"chart-map-limit\"") && input.contains("aria-valuetext=\"1.00 ms\"")
    );
    assert!(page.contains("<label for=\"chart-map-limit\">"));
    let answer = between(&between(&page, "<output", "/output>"), ">", "<");

    let figures = between(&page, "id=\"figures\">", "</script>");
    let figures: serde_json::Value = serde_json::from_str(&figures).unwrap();
    let map = figures.as_array().unwrap().iter().find(|one| one["id"] == "chart-map").unwrap();
    let choices = map["choices"].as_array().unwrap();
    let limits = choices[map["first"].as_u64().unwrap() as usize]["limits"].as_array().unwrap();
    assert_eq!(answer.replace("&lt;", "<"), limits[chosen]["answer"].as_str().unwrap());
    for choice in choices {
        let limits = choice["limits"].as_array().unwrap();
        let values: Vec<f64> = limits.iter().map(|one| one["value"].as_f64().unwrap()).collect();
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
        // The reads that fit become no fewer as the limit rises.
        let z = choice["data"][1]["z"].as_array().unwrap();
        let fits = |limit: f64| {
            let row = |row: &&serde_json::Value| {
                let cells = row.as_array().unwrap().iter().filter_map(|cell| cell.as_f64());
                cells.into_iter().any(|cell| 10f64.powf(cell) <= limit * 1.000_001)
            };
            z.iter().rev().position(|one| row(&one)).map(|from_above| z.len() - 1 - from_above)
        };
        let labels = choice["layout"]["yaxis"]["ticktext"].as_array().unwrap();
        assert_eq!(labels.len(), z.len(), "each row has its label");
        for limit in limits {
            let answer = limit["answer"].as_str().unwrap();
            match fits(limit["value"].as_f64().unwrap()) {
                Some(row) => {
                    let reads = labels[row].as_str().unwrap();
                    assert!(answer.contains(&format!("{reads} reads per second")), "{answer}");
                }
                None => assert!(answer.contains("no load of the map"), "{answer}"),
            }
        }
    }
}

/// The page of the map whose cells have this doubt.
fn doubted_map(verdict: Verdict) -> String {
    let (_, bytes) = samples::all().into_iter().find(|(name, _)| *name == "map").unwrap();
    let mut map = document::read(&bytes).unwrap();
    let conclusion = map.conclusion.as_mut().unwrap();
    let Some(Found::Map(found)) = &mut conclusion.found else { panic!("no map") };
    for cell in &mut found.cells {
        cell.doubt = Some(CellDoubt { verdict, code: "foreign-io".to_owned() });
    }
    html::document_without_library(&map)
}

#[test]
fn answers_and_figures_of_a_map_say_that_they_rest_on_a_suspect_cell_and_rest_on_no_void_one() {
    let answers = |page: &str| -> Vec<String> {
        let answers = page.split("\"answer\":\"").skip(1);
        answers.map(|answer| answer.split('"').next().unwrap().to_owned()).collect()
    };
    let tiles = |page: &str| -> Vec<String> {
        let tiles = page.split("<dl class=\"tiles\">").nth(1).unwrap_or_default();
        let tiles = tiles.split("</dl>").next().unwrap().split("<dt>").skip(1);
        tiles.map(|tile| tile.split("</dt>").next().unwrap().to_owned()).collect()
    };
    let suspect = doubted_map(Verdict::Suspect);
    let told: Vec<String> =
        answers(&suspect).into_iter().filter(|one| !one.contains("no load of the map")).collect();
    assert!(10 < told.len());
    for answer in &told {
        let loads = answer.matches(" reads per second").count();
        let doubts = answer.matches(": other programs used the disk)").count();
        assert_eq!(doubts, loads, "{answer}");
    }
    assert_eq!(tiles(&suspect).len(), 4);
    for tile in tiles(&suspect) {
        assert!(tile.contains("(that cell is ") && tile.contains("other programs"), "{tile}");
    }
    let void = doubted_map(Verdict::Void);
    assert!(answers(&void).iter().all(|one| one.contains("no load of the map")));
    assert_eq!(tiles(&void), [""; 0]);
    assert!(void.contains("void: other programs used the disk"), "what the pointer shows");
}

#[test]
fn every_element_that_begins_ends() {
    const VOID: [&str; 4] = ["meta", "br", "input", "!DOCTYPE"];
    for (name, page) in pages() {
        let mut open = Vec::new();
        for tag in tags(&page) {
            match tag.strip_prefix('/') {
                Some(end) => assert_eq!(open.pop().as_deref(), Some(end), "{name}"),
                None if VOID.contains(&tag.as_str()) => {}
                None => open.push(tag),
            }
        }
        assert!(open.is_empty(), "{name}: {open:?}");
    }
}

#[test]
fn no_name_becomes_markup_or_a_script() {
    let page = html::document(&samples::void());
    let scripts = tags(&page).iter().filter(|tag| *tag == "script").count();
    assert_eq!(scripts, 3, "the figures, the library and the page's own script");
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("</script><b>"));
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(&quot;x&quot;)"));
}

#[test]
fn the_page_loads_nothing() {
    for (name, page) in pages() {
        assert!(page.contains("default-src 'none'"), "{name}");
        for reference in ["src=\"", "url(", "@import", "<link", "<iframe", "<img"] {
            assert!(!page.contains(reference), "{name}: {reference}");
        }
        let links: Vec<&str> = page.split("href=\"").skip(1).collect();
        assert!(links.iter().all(|link| link.starts_with('#')), "{name}");
    }
}

#[test]
fn the_figures_are_json_and_each_has_its_place() {
    for (name, page) in pages() {
        let start = page.find("id=\"figures\">").unwrap() + "id=\"figures\">".len();
        let json = page[start..].split("</script>").next().unwrap();
        let figures: serde_json::Value = serde_json::from_str(json).unwrap();
        for figure in figures.as_array().unwrap() {
            let place = format!("id=\"{}\"", figure["id"].as_str().unwrap());
            assert!(page.contains(&place), "{name}: {place}");
            // The library's own labels of a logarithmic axis leave out the power of ten.
            let plots = figure["choices"].as_array().cloned().unwrap_or(vec![figure.clone()]);
            let axes = plots.iter().flat_map(|plot| plot["layout"].as_object().unwrap());
            for (axis, of) in axes {
                if of["type"] == "log" {
                    let [at, text] = ["tickvals", "ticktext"].map(|key| of[key].as_array());
                    let place = format!("{name}: {axis} of {place}");
                    let at = at.unwrap_or_else(|| panic!("{place}"));
                    assert!(2 <= at.len() && at.len() == text.unwrap().len(), "{place}");
                }
            }
        }
    }
}

#[test]
fn the_page_says_what_was_found_and_how_to_repeat_it() {
    let page = html::document(&samples::quick());
    for text in [
        "nothing speaks against the numbers",
        "closed loop at queue depth 32",
        "every step: The region is 8 GiB",
        "fathom quick",
        "--seed 42",
        "SAMSUNG MZQL2960HCJR-00A07",
        "device-cache",
        "Copyright",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let page = html::document(&samples::open());
    assert!(page.contains("open loop, 5,000 IOPS offered"));
    assert!(html::document(&samples::empty()).contains("No trial was finished"));
}

#[test]
fn the_list_of_very_many_trials_is_closed() {
    let (_, bytes) = samples::all().into_iter().find(|(name, _)| *name == "sweep").unwrap();
    let mut document = document::read(&bytes).unwrap();
    let closed = |document: &_| html::document(document).contains(" trials in full</summary>");
    assert!(!closed(&document));
    let trial = document.trials[0].clone();
    document.trials.resize(1061, trial);
    let page = html::document(&document);
    assert!(page.contains("<summary>All 1,061 trials in full</summary>"));
    let count = |tag: &str| tags(&page).iter().filter(|one| *one == tag).count();
    assert_eq!(count("details"), count("/details"));
}
