use arena::Registry;
pub fn register(_: &mut Registry) {}
