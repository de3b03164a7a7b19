//! Charts as images: well-formed, self-contained, and with the document's figures. `IMAGES=FOLDER`
//! writes them there for inspection.

mod samples;

use fathom_report::page::{self, Illustration, Subject};
use fathom_report::{document, image};

fn all() -> Vec<(&'static str, Illustration)> {
    let of = |(name, bytes): (&'static str, Vec<u8>)| {
        let document = document::read(&bytes).unwrap();
        page::illustrations(&document).into_iter().map(move |one| (name, one))
    };
    samples::all().into_iter().flat_map(of).collect()
}

#[test]
fn every_result_has_its_images() {
    let names: Vec<String> =
        all().iter().map(|(name, one)| format!("{name} {}", one.name)).collect();
    assert_eq!(
        names,
        [
            "quick grid",
            "open run",
            "streams run",
            "void run",
            "parted run",
            "torn grid",
            "interrupted run",
            "hosts run",
            "hosts hosts",
            "scaling iops",
            "scaling efficiency",
            "scaling p50",
            "scaling p99",
            "sweep iops",
            "sweep bandwidth",
            "sweep p50",
            "sweep p99",
            "sweep iops-matrix",
            "repeats grid",
            "ab ratios",
            "ab distributions",
            "cube bandwidth",
            "cube p50",
            "cube p99",
            "families bandwidth",
            "families p50",
            "families p99",
            "peak tradeoff",
            "peak throughput",
            "objective tradeoff",
            "objective throughput",
            "map map",
            "sustain rounds",
            "sustain window",
            "sustain times",
            "restless rounds",
            "restless window",
            "restless times",
            "demand demand",
            "demand outstanding",
            "demand iops-matrix",
            "demand rounds",
            "demand window",
            "demand times",
            "pauses recovery",
            "pauses iops",
            "pauses p50",
            "pauses p99",
            "pauses rounds",
            "pauses window",
            "pauses times",
            "phases recovery",
            "matrix mean-matrix",
            "matrix max-matrix",
            "matrix p50",
            "matrix p99",
            "matrix iops",
            "matrix rounds",
            "matrix window",
            "matrix convergence",
        ]
    );
}

#[test]
fn a_search_without_response_times_has_an_image_all_the_same() {
    let (_, bytes) = samples::all().into_iter().find(|(name, _)| *name == "objective").unwrap();
    let mut document = document::read(&bytes).unwrap();
    let found = document.conclusion.as_mut().and_then(|last| last.found.as_mut());
    let Some(document::Found::Peak(found)) = found else { panic!("it is a search") };
    found.probes.iter_mut().for_each(|probe| probe.response_time_ns = None);
    for one in page::illustrations(&document) {
        let svg = image::svg(&one);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", one.name);
    }
}

#[test]
fn every_image_has_the_answer_and_needs_nothing_else() {
    let folder = std::env::var_os("IMAGES").map(std::path::PathBuf::from);
    let mut painted: Vec<String> = Vec::new();
    for (name, one) in all() {
        let odd = "sim:nvme <&>, 2026-11-21";
        let one = Illustration { source: odd.to_owned(), ..one };
        let svg = image::svg(&one);
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{name}");
        assert!(!svg.contains("<text") && !svg.contains("NaN") && !svg.contains("inf"), "{name}");
        assert!(svg.contains("sim:nvme &lt;&amp;&gt;, 2026-11-21"), "{name}");
        // The words of the answer are drawn, in lines of their own.
        let drawn: Vec<&str> = svg
            .split("aria-label=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .take_while(|line| !line.starts_with("sim:nvme &lt;"))
            .collect();
        let whole = fathom_core::markup(&one.answer.text);
        assert_eq!(drawn.join(" "), whole, "{name}");
        // Every letter that is used is defined.
        for used in svg.split("href=\"#").skip(1) {
            let id = used.split('"').next().unwrap();
            assert!(svg.contains(&format!("id=\"{id}\"")), "{name}: {id}");
        }
        // Charts are drawn from the same shapes, and painting is slow, so one of each kind is
        // enough.
        let kinds = ["iops", "iops-matrix", "tradeoff", "run", "grid"];
        let is_new = kinds.contains(&&*one.name) && !painted.contains(&one.name);
        if folder.is_none() && !is_new {
            continue;
        }
        painted.push(one.name.clone());
        let png = image::png(&one).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        if let Some(folder) = &folder {
            let path = folder.join(format!("{name}-{}", one.name));
            std::fs::write(path.with_extension("svg"), &svg).unwrap();
            std::fs::write(path.with_extension("png"), &png).unwrap();
        }
    }
}

#[test]
fn a_long_answer_is_wrapped_and_nothing_leaves_the_image() {
    let (_, one) = all().into_iter().find(|(name, _)| *name == "quick").unwrap();
    let word = "/dev/disk/by-id/".repeat(20);
    let mut long = one.clone();
    long.answer.text = format!("Of {word} the answer is {}", "long ".repeat(60));
    let height = |one: &Illustration| -> f32 {
        let svg = image::svg(one);
        svg.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    assert!(height(&one) + 60.0 < height(&long), "it takes lines of its own");
    assert!(matches!(long.drawing, Subject::Grid(_)));
}
