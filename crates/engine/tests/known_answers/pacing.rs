//! What sets the pace: that what was offered is what was asked for, at every time.

use fathom_core::spec::{Course, Stage};

use super::*;

/// Seconds, and the rates at the beginning and at the end.
fn course(stages: &[(u64, f64, f64)]) -> Course {
    let stage = |&(seconds, begins, ends): &(u64, f64, f64)| Stage {
        lasts: Span::from_secs(seconds),
        begins: Rate(begins),
        ends: Rate(ends),
    };
    Course::new(stages.iter().map(stage).collect())
}

#[test]
fn every_interval_has_the_integral_of_its_course() {
    let course = course(&[(3, 1e3, 1e3), (6, 1e3, 2e4), (2, 0.0, 0.0), (0, 5e3, 5e3)]);
    for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
        // The mean of a course is for people: it is not what starts the I/Os.
        let point = lasting(15, open(1.0, arrivals, 1000));
        let point = Point { warm_up: Span::from_ms(700), interval: Span::from_ms(100), ..point };
        let point = with(point, |stream| stream.course = Some(course.clone()));
        let record = run("queue,servers=64,service-time=100us", &point);
        let mut sum = 0.0;
        for interval in &record.series {
            let end = interval.start + interval.length;
            let expected = course.mean(interval.start, end).0 * interval.length.as_secs_f64();
            // What is in flight at either end, or five standard deviations of a Poisson count.
            let off = (interval.ios[0] as f64 - expected).abs();
            let most = match arrivals {
                Arrivals::Uniform => 4.0,
                Arrivals::Poisson => 4.0 + 5.0 * expected.sqrt(),
            };
            assert!(off <= most, "{arrivals:?} {}: {off} of {expected}", interval.start);
            sum += expected;
        }
        assert_near(record.total(None).ios() as f64, sum, 0.02);
        // 1000/s in the warm-up, as the course begins.
        let ledger = record.ledger();
        assert!(ledger.completed_in_warm_up.abs_diff(700) < 100, "{ledger:?}");
        assert_eq!(ledger.unstarted, 0);
    }
}

#[test]
fn what_a_course_offers_beyond_the_target_is_backlog_and_is_worked_off_after_it() {
    // 10,000/s can be done; 20,000/s for 2 s leave 20,000 behind, and at 5,000/s that takes 4 s.
    let course = course(&[(2, 5e3, 5e3), (2, 2e4, 2e4), (0, 5e3, 5e3)]);
    let point = lasting(10, open(1.0, Arrivals::Uniform, 8));
    let point = with(point, |stream| stream.course = Some(course));
    let record = run("queue,servers=1,service-time=100us", &point);
    let per_second: Vec<u64> = record.series.iter().map(|interval| interval.ios[0]).collect();
    let expected = [5e3, 5e3, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 5e3, 5e3];
    for (ios, expected) in per_second.iter().zip(expected) {
        assert_near(*ios as f64, expected, 0.01);
    }
    // The last of the peak waited for the 20,000 before it.
    assert_near(record.total(None).response_time().max().unwrap() as f64, 2e9, 0.01);
    assert_eq!(record.ledger().unstarted, 0);
}
