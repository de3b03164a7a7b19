//! The targets of an experiment whose points are on several: each found once, and the grounds on which
//! points share open targets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fathom_core::experiment::{Planned, Precondition};
use fathom_core::facts::Target;
use fathom_core::spec::{Access, Point};
use fathom_core::trial::{Coordinate, Role};
use fathom_engine::target::Overwrite;

use super::experiment::{Ground, Which};
use super::place::Place;
use super::{folder, opened, settled};
use crate::cli::described::{Described, Folder};
use crate::cli::values::Backend;
use crate::error::Error;
use crate::resolve::{self, Machine, Spec};
use crate::workload::Asked;

/// A resolved point, on a site.
pub struct Settled {
    /// The site, by its place.
    pub site: usize,
    /// The point, by the places of the site's targets.
    pub spec: Spec,
    /// Its description.
    pub described: Described,
}

/// The properties that decide which points share open targets.
#[derive(Clone, Debug, PartialEq)]
struct GroundKey {
    site: usize,
    backend: Backend,
    /// For each stream, the access to each target.
    streams: Vec<(Access, Vec<u32>)>,
}

/// The grounds of the points, and the ground of each point.
#[derive(Default)]
pub struct Grounds {
    list: Vec<(GroundKey, Ground)>,
    /// By the role and the place of a point.
    of: BTreeMap<(Role, Vec<String>), usize>,
}

impl Grounds {
    /// Adds a point on a site, with the spec that it is from, its role and its coordinates.
    pub fn add(
        &mut self,
        (site, place): (usize, &Place),
        spec: &Spec,
        point: Point,
        (role, coordinates): (Role, &[Coordinate]),
    ) {
        let streams = point.streams.iter().map(|stream| {
            (stream.access, stream.regions.iter().map(|region| region.target).collect())
        });
        let key = GroundKey { site, backend: spec.backend, streams: streams.collect() };
        let known = self.list.iter().position(|(known, _)| *known == key);
        let known = known.unwrap_or_else(|| {
            self.list.push((key, Ground { place: place.clone(), spec: spec.clone() }));
            self.list.len() - 1
        });
        self.list[known].1.spec.points.push(point);
        self.of.insert((role, labels(coordinates)), known);
    }

    /// The grounds, and the ground of a point.
    pub fn divided(self) -> (Vec<Ground>, Which) {
        let of = self.of;
        let which = move |planned: &Planned| {
            let role = match planned.place.role {
                Role::Preparation => Role::Preparation,
                _ => Role::Result,
            };
            of[&(role, labels(&planned.place.coordinates))]
        };
        (self.list.into_iter().map(|(_, ground)| ground).collect(), Box::new(which))
    }
}

fn labels(coordinates: &[Coordinate]) -> Vec<String> {
    coordinates.iter().map(|one| one.label.clone()).collect()
}

/// Targets that are measured together, and their places among all.
#[derive(Debug)]
struct Site {
    paths: Vec<PathBuf>,
    place: Place,
    places: Vec<u32>,
}

/// All targets of an experiment, grouped by what is measured together.
#[derive(Debug, Default)]
pub struct Sites {
    list: Vec<Site>,
    /// Every target once.
    pub union: Vec<Target>,
}

impl Sites {
    /// Resolves a point on its targets.
    ///
    /// # Errors
    ///
    /// When a target does not exist, or the settings do not fit.
    pub fn settle(&mut self, mut asked: Asked, machine: Machine) -> Result<Settled, Error> {
        let paths = folder::locate(&mut asked.described)?;
        let site = match self.list.iter().position(|site| site.paths == paths) {
            Some(site) => site,
            None => self.find(paths)?,
        };
        folder::stay_inside(&asked.described, &self.list[site].place)?;
        let facts = self.list[site].place.facts();
        let spec = resolve::settle(&asked.described, facts, machine);
        let spec = spec.map_err(|blame| asked.explain(blame))?;
        let written = opened::written_targets(&spec);
        folder::no_names_outside(&asked.described, &self.list[site].place, &written)?;
        settled::readable(&spec)?;
        Ok(Settled { site, spec, described: asked.described })
    }

    fn find(&mut self, paths: Vec<PathBuf>) -> Result<usize, Error> {
        let place = Place::find(&paths)?;
        let places = place.facts().into_iter().map(|target| {
            let known = self.union.iter().position(|known| known.name == target.name);
            known.unwrap_or_else(|| {
                self.union.push(target);
                self.union.len() - 1
            }) as u32
        });
        let places = places.collect();
        self.list.push(Site { paths, place, places });
        Ok(self.list.len() - 1)
    }

    /// The targets of a site, as they were found.
    pub fn place(&self, site: usize) -> &Place {
        &self.list[site].place
    }

    /// A point with the targets' places among all.
    pub fn in_union(&self, site: usize, mut point: Point) -> Point {
        for region in point.streams.iter_mut().flat_map(|stream| &mut stream.regions) {
            region.target = self.list[site].places[region.target as usize];
        }
        point
    }

    /// The consent, for all points together: one that only reads needs none, but another one may.
    /// Before each, everything that it addresses is written this many times.
    ///
    /// # Errors
    ///
    /// When it is missing.
    pub fn consent(&self, settled: &[&Settled], passes: u32) -> Result<Overwrite, Error> {
        let first = settled[0];
        let points = settled.iter().flat_map(|one| {
            let point = self.in_union(one.site, one.spec.points[0].clone());
            Precondition::new(&point, passes).next().into_iter().chain([point])
        });
        let whole =
            Spec { points: points.collect(), targets: self.union.clone(), ..first.spec.clone() };
        let folders = settled.iter().flat_map(|one| {
            let places = &self.list[one.site].places;
            one.described.folders.iter().map(|folder| Folder {
                name: folder.name.clone(),
                targets: folder.targets.iter().map(|&target| places[target as usize]).collect(),
            })
        });
        let described = Described { folders: folders.collect(), ..first.described.clone() };
        Ok(resolve::consent::permit(whole, &described)?.consent)
    }
}
