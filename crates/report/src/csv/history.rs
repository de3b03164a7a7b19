//! The table of a history: a row for each result and figure.

use super::field;
use crate::history::History;

/// A history as a table.
pub fn document(history: &History) -> String {
    let mut out = String::from(
        "workload,target,point,metric,created,file,value,level,level_mean,ratio,ratio_low,ratio_high,p\n",
    );
    for (group, series) in
        history.groups.iter().flat_map(|group| group.series.iter().map(move |one| (group, one)))
    {
        for (place, level) in series.levels.iter().enumerate() {
            for at in level.first..level.first + level.results {
                let value = &series.values[at];
                let change = series.changes.iter().find(|change| change.at == at);
                let change = change.map_or([None; 4], |change| {
                    let ratio = change.ratio;
                    [ratio.value, ratio.low, ratio.high, change.p].map(Some)
                });
                let texts = [
                    &group.workload,
                    &group.target,
                    &series.point,
                    &series.metric,
                    &value.created,
                    &value.file,
                ];
                let mut cells: Vec<String> = texts.into_iter().map(|text| field(text)).collect();
                cells.extend([value.value.to_string(), (place + 1).to_string()]);
                cells.push(level.mean.to_string());
                cells.extend(change.map(|one| one.map_or(String::new(), |one| one.to_string())));
                out.push_str(&cells.join(","));
                out.push('\n');
            }
        }
    }
    out
}
