//! Adds many pairs of affine points with one inversion for all of them. Each addition takes 5
//! multiplications and a squaring, while an addition in Jacobian coordinates takes 8
//! multiplications and 3 squarings. The sums are affine.

use super::field::Field;
use super::point::Affine;

/// Number of products that are computed in parallel. A multiplication depends only on the previous
/// one in its own lane.
const LANES: usize = 4;

/// Adds each of `others` to the point at its index, in constant time. Returns false and changes
/// nothing if two points to add are equal or opposite. No point may be infinity.
///
/// `products` is a work buffer, which contains secrets if the points are secret.
#[must_use]
pub(super) fn add_different(points: &mut [Affine], others: &[Affine], products: &mut Vec<Field>) -> bool {
    products.clear();
    let mut lanes = [Field::ONE; LANES];
    for (index, (point, other)) in points.iter().zip(others).enumerate() {
        let lane = &mut lanes[index % LANES];
        products.push(*lane);
        *lane = *lane * (other.x - point.x);
    }
    if lanes.iter().any(|lane| lane.is_zero()) {
        return false;
    }
    invert_lanes(&mut lanes);
    let pairs = points.iter_mut().zip(others).zip(&*products).enumerate();
    for (index, ((point, other), before)) in pairs.rev() {
        // The lane has the inverse of the product up to this index, and after the multiplication
        // that up to the previous index.
        let lane = &mut lanes[index % LANES];
        let slope = (other.y - point.y) * (*lane * *before);
        *lane = *lane * (other.x - point.x);
        *point = third_point(point, other, slope);
    }
    true
}

/// Replaces each number by its inverse, with one inversion. No number may be zero. Secrets stay on
/// the stack.
fn invert_lanes(lanes: &mut [Field; LANES]) {
    let [a, b, c, d] = *lanes;
    let (ab, cd) = (a * b, c * d);
    let inverse = (ab * cd).invert();
    let (inverse_of_ab, inverse_of_cd) = (inverse * cd, inverse * ab);
    *lanes = [inverse_of_ab * b, inverse_of_ab * a, inverse_of_cd * d, inverse_of_cd * c];
}

/// Returns the sum of two points whose line, or tangent, has this slope.
#[inline(always)]
fn third_point(point: &Affine, other: &Affine, slope: Field) -> Affine {
    let x = slope.square() - point.x - other.x;
    Affine { x, y: slope * (point.x - x) - point.y }
}

/// One addition of two points.
enum Addition {
    /// Numerator and denominator of the slope of the line through the points, or of the tangent if
    /// they are equal.
    Line(Field, Field),
    /// The sum, if it needs no slope.
    Known(Affine),
}

/// Returns how to add two points.
fn classify(point: &Affine, other: &Affine) -> Addition {
    if point.is_infinity() {
        return Addition::Known(*other);
    }
    if other.is_infinity() {
        return Addition::Known(*point);
    }
    if point.x != other.x {
        return Addition::Line(other.y - point.y, other.x - point.x);
    }
    if point.y != other.y {
        return Addition::Known(Affine::INFINITY);
    }
    // The tangent: (3x² − 3)/2y. y = 0 does not occur on this curve, because its order is odd.
    let square = point.x.square() - Field::ONE;
    Addition::Line(square.double() + square, point.y.double())
}

/// Adds each of `others` to the point at its index, for any points. [`Affine::INFINITY`] represents
/// infinity. For public points: it branches on them.
fn add_any(points: &mut [Affine], others: &[Affine]) {
    let mut denominators: Vec<Field> = points
        .iter()
        .zip(others)
        .map(|(point, other)| match classify(point, other) {
            Addition::Line(_, denominator) => denominator,
            Addition::Known(_) => Field::ONE,
        })
        .collect();
    Field::invert_all(&mut denominators);
    for ((point, other), inverse) in points.iter_mut().zip(others).zip(denominators) {
        *point = match classify(point, other) {
            Addition::Line(numerator, _) => third_point(point, other, numerator * inverse),
            Addition::Known(sum) => sum,
        };
    }
}

/// Computes `count` sums of many points each. `points` contains the first point of each sum, then
/// the second point of each sum, and so on; none of the points may be infinity. The sums are
/// written to the start of `points`, with [`Affine::INFINITY`] for infinity. For public points.
pub(super) fn sum_any(points: &mut [Affine], count: usize, products: &mut Vec<Field>) {
    let mut is_special = false;
    sum_pairwise(points, count, |left, right| {
        if is_special || !add_different(left, right, products) {
            // From here on, some points may be infinity.
            is_special = true;
            add_any(left, right);
        }
        true
    });
}

/// Like [`sum_any`], but in constant time. Returns false if two points to add are equal or
/// opposite.
#[must_use]
pub(super) fn sum_different(points: &mut [Affine], count: usize, products: &mut Vec<Field>) -> bool {
    sum_pairwise(points, count, |left, right| add_different(left, right, products))
}

/// Adds the second half of the terms to the first half until each sum has one term, or `add`
/// returns false.
fn sum_pairwise(
    points: &mut [Affine],
    count: usize,
    mut add: impl FnMut(&mut [Affine], &[Affine]) -> bool,
) -> bool {
    let mut terms = points.len().checked_div(count).unwrap_or(0);
    while terms > 1 {
        let pairs = terms / 2;
        let (left, right) = points[..terms * count].split_at_mut((terms - pairs) * count);
        if !add(&mut left[..pairs * count], right) {
            return false;
        }
        terms -= pairs;
    }
    true
}
