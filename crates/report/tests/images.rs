//! Charts as images: well-formed, self-contained, and with the document's figures. `IMAGES=FOLDER`
//! writes them there for inspection.

mod samples;

use fathom_report::chart::{self, Chart};
use fathom_report::{document, image};

fn charts() -> Vec<(&'static str, Chart)> {
    let of = |(name, bytes): (&'static str, Vec<u8>)| {
        let document = document::read(&bytes).unwrap();
        chart::charts(&document).into_iter().map(move |chart| (name, chart))
    };
    samples::all().into_iter().flat_map(of).collect()
}

#[test]
fn every_experiment_has_its_charts() {
    let names: Vec<String> =
        charts().iter().map(|(name, chart)| format!("{name} {}", chart.name)).collect();
    assert_eq!(
        names,
        [
            "sweep iops",
            "sweep bandwidth",
            "sweep p50",
            "sweep p99",
            "sweep iops-matrix",
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
fn every_chart_becomes_an_image_that_needs_nothing_else() {
    let folder = std::env::var_os("IMAGES").map(std::path::PathBuf::from);
    for (name, chart) in charts() {
        let svg = image::svg(&chart, "sim:nvme <&>, 2026-11-21");
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{name}");
        assert!(!svg.contains("<text") && !svg.contains("NaN") && !svg.contains("inf"), "{name}");
        assert!(svg.contains("sim:nvme &lt;&amp;&gt;, 2026-11-21"), "{name}");
        // Every letter that is used is defined.
        for used in svg.split("href=\"#").skip(1) {
            let id = used.split('"').next().unwrap();
            assert!(svg.contains(&format!("id=\"{id}\"")), "{name}: {id}");
        }
        // Charts are drawn from the same shapes, and painting is slow, so one of each kind is
        // enough.
        let painted = ["iops", "iops-matrix", "tradeoff"].contains(&chart.name.as_str());
        if folder.is_none() && !painted {
            continue;
        }
        let png = image::png(&chart, "sim:nvme").unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        if let Some(folder) = &folder {
            let path = folder.join(format!("{name}-{}", chart.name));
            std::fs::write(path.with_extension("svg"), &svg).unwrap();
            std::fs::write(path.with_extension("png"), &png).unwrap();
        }
    }
}
