//! slim.rs: models of slimsvm as images, without std and without allocation. SPDX-License-Identifier: 0BSD
//!
//! ```ignore
//! mod slim;
//! let model = slim::Model::new(include_bytes!("model.bin"))?;
//! let mut work = [0.0; 64]; // model.work() at least
//! let class = model.predict(&row, &mut work);
//! ```
#![allow(dead_code)]

/// Why an image cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// Fewer bytes than the image says it has.
    Short,
    /// No image, or one of another byte order.
    Other,
    /// An image of another version.
    Version,
    /// Damaged.
    Checksum,
    /// A kernel, goal or precision that this reader does not know.
    Unknown,
    /// Lengths that do not fit together.
    Lengths,
}

/// How outputs become a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Sign,
    Largest,
    Votes,
    ScoredVotes,
    Dag,
    Value,
    Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    Linear,
    Rbf,
    Poly,
    Sigmoid,
    Laplacian,
    Chi2,
}

const HEAD: usize = 64;
const MOST: u32 = 1 << 24;
const LEAST: f32 = 1e-7;
const LOGISTIC: u8 = 1;
const ISOTONIC: u8 = 2;
const TEMPERATURE: u8 = 3;

fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([data[at], data[at + 1]])
}

fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

fn f32_at(data: &[u8], index: usize) -> f32 {
    f32::from_bits(u32_at(data, 4 * index))
}

fn crc32(data: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
        }
    }
    !crc
}

/// exp(x): a polynomial about the nearest power of 2, as all readers compute it.
fn exponential(x: f32) -> f32 {
    let x = if x > -87.0 { if x < 88.0 { x } else { 88.0 } } else { -87.0 };
    let n = (x * 1.442_695_04 + if x < 0.0 { -0.5 } else { 0.5 }) as i32;
    let r = (x - n as f32 * 0.693_359_375) - n as f32 * -2.121_944_4e-4;
    let mut p = 1.388_888_92e-3;
    for factor in [8.333_333_77e-3, 4.166_666_79e-2, 0.166_666_672, 0.5, 1.0, 1.0] {
        p = p * r + factor;
    }
    p * f32::from_bits(((n + 127) as u32) << 23)
}

fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exponential(-x))
}

fn largest(values: &[f32]) -> usize {
    let mut best = 0;
    for (k, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = k;
        }
    }
    best
}

/// Numbers of an image: float32, or codes with a low end and a step for each column or row.
#[derive(Debug, Clone, Copy)]
struct Table<'a> {
    codes: &'a [u8],
    low: &'a [u8],
    step: &'a [u8],
    columns: usize,
    by_column: bool,
    bits: u8,
}

impl Table<'_> {
    fn number(&self, row: usize, column: usize) -> f32 {
        let i = row * self.columns + column;
        let code = match self.bits {
            32 => return f32_at(self.codes, i),
            16 => u16_at(self.codes, 2 * i),
            8 => u16::from(self.codes[i]),
            _ => u16::from(self.codes[i / 2] >> (i % 2 * 4) & 15),
        };
        let pair = if self.by_column { column } else { row };
        f32_at(self.low, pair) + f32_at(self.step, pair) * f32::from(code)
    }
}

/// The bytes that are left of an image; each array begins at a multiple of 4.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: u64) -> Result<&'a [u8], Error> {
        let padded = (bytes + 3) / 4 * 4;
        if padded > self.0.len() as u64 {
            return Err(Error::Lengths);
        }
        let (found, rest) = self.0.split_at(padded as usize);
        self.0 = rest;
        Ok(found)
    }

    fn floats(&mut self, count: u64) -> Result<&'a [u8], Error> {
        self.take(4 * count)
    }

    fn table(&mut self, rows: usize, columns: usize, bits: u8) -> Result<Table<'a>, Error> {
        let pairs = rows.min(columns) as u64;
        let codes = self.take((rows as u64 * columns as u64 * u64::from(bits) + 7) / 8)?;
        let (low, step) = if bits < 32 { (self.floats(pairs)?, self.floats(pairs)?) } else { (&[][..], &[][..]) };
        Ok(Table { codes, low, step, columns, by_column: columns <= rows, bits })
    }
}

/// A model in an image.
#[derive(Debug, Clone, Copy)]
pub struct Model<'a> {
    kernel: Kernel,
    pub decision: Decision,
    map_kind: u8,
    pub features: usize,
    columns: usize,
    size: usize,
    outputs: usize,
    pub classes: usize,
    knots: usize,
    gamma: f32,
    coef0: f32,
    degree: u32,
    temperature: f32,
    scaling: Option<&'a [u8]>,
    ends: Option<&'a [u8]>,
    projection: Option<Table<'a>>,
    points: Table<'a>,
    widths: Option<&'a [u8]>,
    coef: Table<'a>,
    bias: &'a [u8],
    map: &'a [u8],
    labels: &'a [u8],
}

impl<'a> Model<'a> {
    /// Check an image and return the model in it.
    pub fn new(data: &'a [u8]) -> Result<Self, Error> {
        if data.len() < HEAD {
            return Err(Error::Short);
        }
        if &data[..4] != b"SLMI" {
            return Err(Error::Other);
        }
        if (u16_at(data, 4), u16_at(data, 6)) != (1, HEAD as u16) {
            return Err(Error::Version);
        }
        let length = u32_at(data, 8) as usize;
        if length < HEAD || length > data.len() {
            return Err(Error::Short);
        }
        let data = &data[..length];
        if crc32(&data[16..]) != u32_at(data, 12) {
            return Err(Error::Checksum);
        }
        let kernels = [Kernel::Linear, Kernel::Rbf, Kernel::Poly, Kernel::Sigmoid, Kernel::Laplacian, Kernel::Chi2];
        let decisions = [
            Decision::Sign,
            Decision::Largest,
            Decision::Votes,
            Decision::ScoredVotes,
            Decision::Dag,
            Decision::Value,
            Decision::Side,
        ];
        let kernel = *kernels.get(usize::from(data[16])).ok_or(Error::Unknown)?;
        let decision = *decisions.get(usize::from(data[17])).ok_or(Error::Unknown)?;
        let (map_kind, bits, flags) = (data[18], data[19], data[20]);
        if map_kind > TEMPERATURE || flags > 15 || ![4, 8, 16, 32].contains(&bits) || data[21..24] != [0; 3] {
            return Err(Error::Unknown);
        }
        let mut counts = [0usize; 6];
        for (i, count) in counts.iter_mut().enumerate() {
            let given = u32_at(data, 24 + 4 * i);
            if given >= MOST || (i < 4 && given == 0) {
                return Err(Error::Lengths);
            }
            *count = given as usize;
        }
        let [features, columns, size, outputs, classes, knots] = counts;
        let pairs = classes as u64 * (classes as u64).saturating_sub(1) / 2;
        let fits = match decision {
            Decision::Sign => outputs == 1 && classes == 2,
            Decision::Largest => outputs == classes && classes > 2,
            Decision::Value | Decision::Side => outputs == 1 && classes == 0,
            _ => outputs as u64 == pairs && classes > 2,
        };
        let projected = flags & 4 != 0;
        let fits_rows = if projected { columns <= features } else { columns == features };
        let degree = u32_at(data, 56);
        if !fits || !fits_rows || degree > 1024 || (map_kind != 0 && classes == 0) || flags & 3 == 2 {
            return Err(Error::Lengths);
        }
        let scores = if matches!(decision, Decision::Votes | Decision::ScoredVotes | Decision::Dag) { classes } else { outputs };
        let mut cursor = Cursor(&data[HEAD..]);
        let twice = 2 * features as u64;
        let scaling = if flags & 1 != 0 { Some(cursor.floats(twice)?) } else { None };
        let ends = if flags & 2 != 0 { Some(cursor.floats(twice)?) } else { None };
        let projection = if projected { Some(cursor.table(features, columns, bits)?) } else { None };
        let points = cursor.table(size, columns, bits)?;
        let widths = if flags & 8 != 0 { Some(cursor.floats(size as u64)?) } else { None };
        let coef = cursor.table(size, outputs, bits)?;
        let bias = cursor.floats(outputs as u64)?;
        let map = cursor.floats(match map_kind {
            LOGISTIC => 2 * scores as u64,
            ISOTONIC => 2 * knots as u64 + scores as u64 + 1,
            _ => 0,
        })?;
        if map_kind == ISOTONIC {
            let starts = &map[8 * knots..];
            let rising = (0..scores).all(|k| u32_at(starts, 4 * k) < u32_at(starts, 4 * k + 4));
            if !rising || u32_at(starts, 0) != 0 || u32_at(starts, 4 * scores) as usize != knots {
                return Err(Error::Lengths);
            }
        }
        let labels = cursor.0;
        let mut at = 4;
        for _ in 0..classes {
            if at + 2 > labels.len() {
                return Err(Error::Lengths);
            }
            at += 2 + usize::from(u16_at(labels, at));
        }
        if classes > 0 && at > labels.len() {
            return Err(Error::Lengths);
        }
        Ok(Model {
            kernel,
            decision,
            map_kind,
            features,
            columns,
            size,
            outputs,
            classes,
            knots,
            gamma: f32_at(data, 12),
            coef0: f32_at(data, 13),
            degree,
            temperature: f32_at(data, 15),
            scaling,
            ends,
            projection,
            points,
            widths,
            coef,
            bias,
            map,
            labels,
        })
    }

    /// The floats that predictions need as a place to work.
    pub fn work(&self) -> usize {
        self.columns + self.outputs + 2 * self.classes + self.scores_len()
    }

    /// The number of scores of a row.
    pub fn scores_len(&self) -> usize {
        if self.by_pairs() { self.classes } else { self.outputs }
    }

    /// The label of a class, in UTF-8.
    pub fn label(&self, class: usize) -> &'a [u8] {
        let mut at = 4;
        for _ in 0..class {
            at += 2 + usize::from(u16_at(self.labels, at));
        }
        &self.labels[at + 2..at + 2 + usize::from(u16_at(self.labels, at))]
    }

    /// The number of the class of a row; 1, or -1 for a novel row; 0 for regression, whose value is the only score.
    pub fn predict(&self, row: &[f32], work: &mut [f32]) -> i32 {
        if self.map_kind != 0 {
            let (proba, work) = work.split_at_mut(self.classes);
            self.proba_of(row, proba, work);
            return largest(proba) as i32;
        }
        let (out, rest) = self.evaluate(row, work);
        match self.decision {
            Decision::Sign => i32::from(out[0] > 0.0),
            Decision::Side => if out[0] >= 0.0 { 1 } else { -1 },
            Decision::Value => 0,
            Decision::Largest => largest(out) as i32,
            Decision::Dag => self.winner(out) as i32,
            Decision::Votes => {
                let (votes, rest) = rest.split_at_mut(self.classes);
                self.tally(out, votes, &mut rest[..self.classes]);
                largest(votes) as i32
            }
            Decision::ScoredVotes => {
                let (scores, rest) = rest.split_at_mut(self.classes);
                self.score(out, scores, rest);
                largest(scores) as i32
            }
        }
    }

    /// The scores of a row; the largest wins, and a single one is above 0 for class 1.
    pub fn scores(&self, row: &[f32], scores: &mut [f32], work: &mut [f32]) {
        let (out, rest) = self.evaluate(row, work);
        self.score(out, scores, rest);
    }

    /// The probability of each class; false if the model has none.
    pub fn proba(&self, row: &[f32], proba: &mut [f32], work: &mut [f32]) -> bool {
        if self.map_kind != 0 {
            self.proba_of(row, proba, work);
        }
        self.map_kind != 0
    }

    fn by_pairs(&self) -> bool {
        matches!(self.decision, Decision::Votes | Decision::ScoredVotes | Decision::Dag)
    }

    /// The row in the coordinates of the points.
    fn prepare(&self, x: &[f32], row: &mut [f32]) {
        row.fill(0.0);
        for i in 0..self.features {
            let mut t = x[i];
            if let Some(scaling) = self.scaling {
                t = (t - f32_at(scaling, i)) * f32_at(scaling, self.features + i);
            }
            if let Some(ends) = self.ends {
                let (low, high) = (f32_at(ends, i), f32_at(ends, self.features + i));
                t = if t < low { low } else if t > high { high } else { t };
            }
            match &self.projection {
                Some(projection) => {
                    for (r, u) in row.iter_mut().enumerate() {
                        *u += t * projection.number(i, r);
                    }
                }
                None => row[i] = t,
            }
        }
    }

    fn value(&self, x: &[f32], j: usize) -> f32 {
        let mut s = 0.0;
        for (i, x) in x.iter().enumerate() {
            let z = self.points.number(j, i);
            let d = x - z;
            s += match self.kernel {
                Kernel::Rbf => d * d,
                Kernel::Laplacian => if d < 0.0 { -d } else { d },
                Kernel::Chi2 => if x + z != 0.0 { d * d / (x + z) } else { 0.0 },
                _ => x * z,
            };
        }
        match self.kernel {
            Kernel::Linear => s,
            Kernel::Poly => {
                let (mut p, mut base, mut n) = (1.0, self.gamma * s + self.coef0, self.degree);
                while n > 0 {
                    if n % 2 == 1 {
                        p *= base;
                    }
                    base *= base;
                    n /= 2;
                }
                p
            }
            Kernel::Sigmoid => {
                let t = self.gamma * s + self.coef0;
                let share = exponential(if t < 0.0 { 2.0 * t } else { -2.0 * t });
                let size = (1.0 - share) / (1.0 + share);
                if t < 0.0 { -size } else { size }
            }
            _ => exponential(self.widths.map_or(-self.gamma, |widths| -self.gamma * f32_at(widths, j)) * s),
        }
    }

    fn evaluate<'w>(&self, x: &[f32], work: &'w mut [f32]) -> (&'w mut [f32], &'w mut [f32]) {
        let (row, rest) = work.split_at_mut(self.columns);
        let (out, rest) = rest.split_at_mut(self.outputs);
        self.prepare(x, row);
        for (k, o) in out.iter_mut().enumerate() {
            *o = f32_at(self.bias, k);
        }
        for j in 0..self.size {
            let v = self.value(row, j);
            for (k, o) in out.iter_mut().enumerate() {
                *o += v * self.coef.number(j, k);
            }
        }
        (out, rest)
    }

    fn tally(&self, out: &[f32], votes: &mut [f32], confidence: &mut [f32]) {
        votes.fill(0.0);
        confidence.fill(0.0);
        let mut pair = 0;
        for i in 0..self.classes {
            for j in i + 1..self.classes {
                votes[if out[pair] > 0.0 { i } else { j }] += 1.0;
                confidence[i] += out[pair];
                confidence[j] -= out[pair];
                pair += 1;
            }
        }
    }

    /// The class of the DAG: the output of the first and the last remaining class removes one, until one is left.
    fn winner(&self, out: &[f32]) -> usize {
        let (mut first, mut last) = (0, self.classes - 1);
        while first < last {
            if out[first * (2 * self.classes - first - 1) / 2 + last - first - 1] > 0.0 {
                last -= 1;
            } else {
                first += 1;
            }
        }
        first
    }

    fn score(&self, out: &[f32], scores: &mut [f32], work: &mut [f32]) {
        if !self.by_pairs() {
            scores[..self.outputs].copy_from_slice(out);
            return;
        }
        let confidence = &mut work[..self.classes];
        self.tally(out, &mut scores[..self.classes], confidence);
        for (score, c) in scores.iter_mut().zip(confidence.iter()) {
            *score += c / (3.0 * (if *c < 0.0 { -c } else { *c } + 1.0));
        }
        if self.decision == Decision::Dag {
            scores[self.winner(out)] += self.classes as f32;
        }
    }

    fn curve(&self, x: f32, k: usize) -> f32 {
        let (values, starts) = (&self.map[4 * self.knots..], &self.map[8 * self.knots..]);
        let (mut i, last) = (u32_at(starts, 4 * k) as usize, u32_at(starts, 4 * k + 4) as usize - 1);
        if !(x > f32_at(self.map, i)) {
            return f32_at(values, i);
        }
        while i < last && x >= f32_at(self.map, i + 1) {
            i += 1;
        }
        if i == last {
            return f32_at(values, last);
        }
        let share = (x - f32_at(self.map, i)) / (f32_at(self.map, i + 1) - f32_at(self.map, i));
        f32_at(values, i) + share * (f32_at(values, i + 1) - f32_at(values, i))
    }

    /// Probabilities; `work` has room for a row, outputs and the votes of pairs.
    fn proba_of(&self, row: &[f32], proba: &mut [f32], work: &mut [f32]) {
        self.scores(row, proba, work);
        let count = self.scores_len();
        let top = proba[largest(&proba[..count])];
        let mut sum = 0.0;
        for k in 0..count {
            let p = match (self.map_kind, count) {
                (LOGISTIC, _) => logistic(f32_at(self.map, k) * proba[k] + f32_at(self.map, count + k)),
                (ISOTONIC, _) => self.curve(proba[k], k),
                (_, 1) => logistic(proba[0] / self.temperature),
                _ => exponential((proba[k] - top) / self.temperature),
            };
            proba[k] = if p < LEAST { LEAST } else if p > 1.0 - LEAST { 1.0 - LEAST } else { p };
            sum += proba[k];
        }
        if count == 1 {
            proba[1] = proba[0];
            proba[0] = 1.0 - proba[1];
            return;
        }
        for p in proba.iter_mut() {
            *p /= sum;
        }
    }
}
